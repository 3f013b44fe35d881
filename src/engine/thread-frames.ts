import { sep } from 'node:path'

/** What is read of a frame. Scopes, arguments and `this` are not: they hold the application's data. */
export interface InspectorFrame {
  readonly functionName: string
  readonly location: { readonly scriptId: string; readonly lineNumber: number }
}

const maxNameLength = 200

/** `function (file:line)`, the file relative to the working directory. */
export function frameText({ functionName, location }: InspectorFrame, scripts: ReadonlyMap<string, string>): string {
  const name = functionName === '' ? '<anonymous>' : functionName.slice(0, maxNameLength)
  return `${name} (${fileName(scripts.get(location.scriptId) ?? '')}:${location.lineNumber + 1})`
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
