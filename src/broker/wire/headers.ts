/** The value of a header: UTF-8 text, raw bytes, or null. */
export type HeaderValue = string | Uint8Array | null
/** The headers of a record in their order; a name may come more than once. */
export type Headers = ReadonlyArray<readonly [name: string, value: HeaderValue]>
export const noHeaders: Headers = Object.freeze([])
