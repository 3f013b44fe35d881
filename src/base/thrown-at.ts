/** Where in the application something was thrown: in code of its own, not in this package's or in Node's. */

/** Folder of this package's code: two up from here in the sources, and the package itself where it is built. */
const ownFolder = new URL('..', import.meta.url).href
const frameLine = /^\s+at (?:async )?(?:(.*?) \()?((?:file:\/\/)?\/[^()]*|[A-Za-z]:\\[^()]*):(\d+):\d+\)?$/

/** Whether this package's own code threw it, without the application's or a library's on top. */
export function isThrownHere(error: unknown): boolean {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return false
  const files = error.stack.split('\n').map((line) => frameLine.exec(line)?.[2])
  const first = files.find((file) => file !== undefined)
  return first !== undefined && urlOf(first).startsWith(ownFolder)
}

const urlOf = (file: string): string => (file.startsWith('file:') ? file : `file://${file}`)

/** As `matchBags (app.ts:31)` or `app.ts:31`; undefined where the stack tells of no such place. */
export function thrownAt(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined
  for (const line of error.stack.split('\n')) {
    const [, name, file, row] = frameLine.exec(line) ?? []
    if (file === undefined || row === undefined) continue
    const url = urlOf(file)
    if (url.startsWith(ownFolder) || url.includes('/node_modules/')) continue
    const place = `${url.slice(url.lastIndexOf('/') + 1)}:${row}`
    // Of a function without a name V8 makes up one, from where it stands: that says nothing.
    return name !== undefined && /^[\w$#]+(\.[\w$#]+)?$/.test(name) ? `${name} (${place})` : place
  }
  return undefined
}
