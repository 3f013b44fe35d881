import { sep } from 'node:path'

/** A worker's answer: function, file and line of each frame. Arguments and `this` are not asked for: they hold the application's data. */
type Site = readonly [functionName: string | null, file: string | null, line: number | null]

/** More frames than this are never kept. */
export const maxFrames = 1000
const maxNameLength = 200
const ownUrl = 'millrace:look'

/**
 * Evaluated inside a worker, in the midst of whatever it does: it reads the stack that it stands on, and leaves
 * everything as it was.
 */
export const readSites = `(() => {
  const { stackTraceLimit, prepareStackTrace } = Error
  try {
    Error.stackTraceLimit = ${maxFrames + 10}
    Error.prepareStackTrace = (_, sites) => sites
    const sites = new Error('').stack
    const line = (site) => [site.getFunctionName(), site.getScriptNameOrSourceURL(), site.getLineNumber()]
    return typeof sites === 'string' ? '[]' : JSON.stringify(sites.map(line))
  } finally {
    Error.stackTraceLimit = stackTraceLimit
    Error.prepareStackTrace = prepareStackTrace
  }
})()
//# sourceURL=${ownUrl}`

/** `function (file:line)`, the file relative to the working directory; innermost first. */
export function framesOf(answer: string): string[] {
  const sites = JSON.parse(answer) as Site[]
  return sites
    .filter(([, file, line]) => file !== ownUrl && line !== null)
    .slice(0, maxFrames)
    .map(([name, file, line]) => {
      const shown = name === null || name === '' ? '<anonymous>' : name.slice(0, maxNameLength)
      return `${shown} (${fileName(file ?? '')}:${line})`
    })
}

/** The caller's own stack in the same form. */
export function currentFrames(depth: number): string[] {
  const lines = (new Error('where').stack ?? '').split('\n').slice(2, 2 + depth)
  return lines.map((line) => {
    const [, name = '<anonymous>', url = '', lineNumber = '0'] =
      /^\s*at (?:(?:async )?(.+?) \()?(.*?):(\d+):\d+\)?$/.exec(line) ?? []
    return `${name.slice(0, maxNameLength)} (${fileName(url)}:${lineNumber})`
  })
}

function fileName(url: string): string {
  if (url === '') return '<eval>'
  const path = url.startsWith('file://') ? decodePath(url.slice('file://'.length)) : url
  const here = `${process.cwd()}${sep}`
  return (path.startsWith(here) ? path.slice(here.length) : path).replace(/\?.*$/s, '')
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
