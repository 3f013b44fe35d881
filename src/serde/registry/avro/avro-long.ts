/** Avro's 64 bits as a number: all that a number holds exactly, and nothing that it does not. */
import type { Type } from 'avsc'
import { SerdeError } from '../../serde.ts'

interface Tap {
  readonly buf: Buffer
  pos: number
}

type LongClass = new () => Type

/** Bits of the lower part while a long is put together: what a 32-bit operation can do. */
const lowBits = 28
const lowRange = 2 ** (lowBits - 1)
const highLimit = 2 ** 26

/** The library's own type gives wrong numbers beyond 2^52. */
export function safeLong(library: { readonly LongType: unknown }): Type {
  const SafeLong = class extends (library.LongType as new () => object) {}
  Object.assign(SafeLong.prototype, { _read: readLong, _write: writeLong, _check: checkLong })
  return new (SafeLong as unknown as LongClass)()
}

/** Any long as the double that is nearest to it, for those who ask for a double. */
export function readApproximateLong(tap: Tap): number {
  return readParts(tap, nearest)
}

function readLong(tap: Tap): number {
  return readParts(tap, exact)
}

function exact(low: number, high: number): number {
  if (high >= highLimit) {
    throw new SerdeError("a long is more than a number holds exactly; take longs as bigints (longs: 'bigint')")
  }
  const magnitude = (low >>> 1) + high * lowRange
  return (low & 1) === 0 ? magnitude : -magnitude - 1
}

/** Rounded once: the lower part and the sign's one are exact together. */
function nearest(low: number, high: number): number {
  return (low & 1) === 0 ? (low >>> 1) + high * lowRange : -((low >>> 1) + 1 + high * lowRange)
}

function readParts(tap: Tap, numberOf: (low: number, high: number) => number): number {
  const { buf } = tap
  let byte = buf[tap.pos++] as number
  let low = byte & 127
  for (let shift = 7; byte > 127 && shift < lowBits; shift += 7) {
    byte = buf[tap.pos++] as number
    low |= (byte & 127) << shift
  }
  let high = 0
  for (let scale = 1; byte > 127; scale *= 128) {
    byte = buf[tap.pos++] as number
    high += (byte & 127) * scale
  }
  return numberOf(low, high)
}

function writeLong(tap: Tap, value: unknown): void {
  if (!Number.isSafeInteger(value)) throw new SerdeError(`${String(value)} is no integer of at most 53 bits`)
  const { buf } = tap
  const isNegative = (value as number) < 0
  const magnitude = isNegative ? -(value as number) - 1 : (value as number)
  let high = Math.floor(magnitude / lowRange)
  let low = (magnitude - high * lowRange) * 2 + (isNegative ? 1 : 0)
  if (high > 0) {
    for (let i = 0; i < lowBits / 7; i++) {
      buf[tap.pos++] = (low & 127) | 128
      low >>>= 7
    }
    while (high > 127) {
      buf[tap.pos++] = (high % 128) | 128
      high = Math.floor(high / 128)
    }
    buf[tap.pos++] = high
    return
  }
  while (low > 127) {
    buf[tap.pos++] = (low & 127) | 128
    low >>>= 7
  }
  buf[tap.pos++] = low
}

function checkLong(this: Type, value: unknown, _flags: unknown, hook?: (value: unknown, type: Type) => void): boolean {
  if (Number.isSafeInteger(value)) return true
  hook?.(value, this)
  return false
}
