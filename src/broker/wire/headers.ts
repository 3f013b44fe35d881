/** The value of a header: UTF-8 text, raw bytes, or null. */
export type HeaderValue = string | Uint8Array | null
/** The headers of a record in their order; a name may come more than once. */
export type Headers = ReadonlyArray<readonly [name: string, value: HeaderValue]>
export const noHeaders: Headers = Object.freeze([])

/** What is wrong with these headers, which come from functions of an application; undefined: nothing. */
export function headersFault(headers: unknown): string | undefined {
  if (!Array.isArray(headers)) return 'headers are a list of pairs of name and value'
  for (const header of headers as unknown[]) {
    const [name, value] = Array.isArray(header) ? (header as unknown[]) : []
    if (typeof name !== 'string') return 'a header is a pair of name and value, and its name is text'
    if (value !== null && typeof value !== 'string' && !(value instanceof Uint8Array))
      return `the header ${JSON.stringify(name)} is of type ${typeof value}; its value is text, bytes or null`
  }
  return undefined
}
