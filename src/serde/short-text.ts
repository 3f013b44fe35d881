/**
 * Short ASCII texts from bytes, without a call into the platform, which would take several times as long as the text
 * itself. A fixed number of arguments makes it fast.
 */

/** The longest text that is made here. */
export const shortText = 12

const text = String.fromCharCode as (...units: Array<number | undefined>) => string

/** The text of bytes [from, to), at most `shortText` of them; undefined where they are not ASCII. */
export function asciiText(b: Uint8Array, from: number, to: number): string | undefined {
  let all = 0
  for (let i = from; i < to; i++) all |= b[i] as number
  return all < 128 ? latin1Text(b, from, to) : undefined
}

/** One character for each byte, of at most `shortText` bytes. */
export function latin1Text(b: Uint8Array, from: number, to: number): string {
  const i = from
  switch (to - from) {
    case 1:
      return text(b[i])
    case 2:
      return text(b[i], b[i + 1])
    case 3:
      return text(b[i], b[i + 1], b[i + 2])
    case 4:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3])
    case 5:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4])
    case 6:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4], b[i + 5])
    case 7:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4], b[i + 5], b[i + 6])
    case 8:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4], b[i + 5], b[i + 6], b[i + 7])
    case 9:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4], b[i + 5], b[i + 6], b[i + 7], b[i + 8])
    case 10:
      return text(b[i], b[i + 1], b[i + 2], b[i + 3], b[i + 4], b[i + 5], b[i + 6], b[i + 7], b[i + 8], b[i + 9])
    case 11:
      return text(
        b[i],
        b[i + 1],
        b[i + 2],
        b[i + 3],
        b[i + 4],
        b[i + 5],
        b[i + 6],
        b[i + 7],
        b[i + 8],
        b[i + 9],
        b[i + 10],
      )
    case 12:
      return text(
        b[i],
        b[i + 1],
        b[i + 2],
        b[i + 3],
        b[i + 4],
        b[i + 5],
        b[i + 6],
        b[i + 7],
        b[i + 8],
        b[i + 9],
        b[i + 10],
        b[i + 11],
      )
    default:
      return ''
  }
}

/** Longer ones are left to the platform. */
export const shortKey = 48
/** One for each length: no view has to be made of a larger one. */
const transient = Array.from({ length: shortKey + 1 }, (_, length) => new Uint8Array(length))

/** The UTF-8 bytes of a text, valid until the next call only: for who copies them at once. */
export function transientUtf8(of: string): Uint8Array {
  const { length } = of
  if (length > shortKey) return Buffer.from(of, 'utf8')
  const bytes = transient[length] as Uint8Array
  for (let i = 0; i < length; i++) {
    const unit = of.charCodeAt(i)
    if (unit > 127) return Buffer.from(of, 'utf8')
    bytes[i] = unit
  }
  return bytes
}
