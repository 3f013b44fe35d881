/** Record headers in their order, repeats kept. Values are UTF-8 text or raw bytes. */
export type HeaderValue = string | Uint8Array | null
export type Headers = ReadonlyArray<readonly [name: string, value: HeaderValue]>
export const noHeaders: Headers = Object.freeze([])
