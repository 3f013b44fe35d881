/**
 * CRC-32C (Castagnoli), the checksum of record batches. Long inputs go through a small WebAssembly routine that takes
 * sixteen bytes a step by table; it is assembled here, so that no binary lies in the repository and nothing is
 * installed. Short inputs stay in JavaScript, where the copy into the routine's memory would cost more than it saves.
 */
const polynomial = 0x82f63b78
const tables = buildTables()
const firstTable = tables.subarray(0, 256)
/** Below this length JavaScript is quicker (measured). */
const shortInput = 96
const dataStart = 16 * 256 * 4
const pages = 9
const chunk = 8 * 65_536

/** The checksum of `bytes[start, end)`, unsigned. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  if (end - start < shortInput) return ~updateShort(-1, bytes, start, end) >>> 0
  let crc = -1
  for (let at = start; at < end; at += chunk) {
    const stop = Math.min(end, at + chunk)
    routine.data.set(bytes.subarray(at, stop), 0)
    crc = routine.update(dataStart, dataStart + stop - at, crc)
  }
  return ~crc >>> 0
}

/**
 * The checksum of `A'B` from that of `AB`, where A and A' have the same length and B, of `tail` bytes, stays untouched:
 * the checksum is linear, so B need not be read again. This makes stamping a batch independent of its size.
 */
export function replacePrefix(whole: number, before: number, after: number, tail: number): number {
  return (whole ^ multiply(powerOfX(tail), before ^ after)) >>> 0
}

function updateShort(crc: number, bytes: Uint8Array, start: number, end: number): number {
  let c = crc
  for (let i = start; i < end; i++) {
    c = (firstTable[(c ^ (bytes[i] as number)) & 0xff] as number) ^ (c >>> 8)
  }
  return c
}

function buildTables(): Int32Array {
  const t = new Int32Array(16 * 256)
  for (let i = 0; i < 256; i++) {
    let c = i
    for (let k = 0; k < 8; k++) c = c & 1 ? polynomial ^ (c >>> 1) : c >>> 1
    t[i] = c
  }
  for (let i = 256; i < t.length; i++) {
    const before = t[i - 256] as number
    t[i] = (t[before & 0xff] as number) ^ (before >>> 8)
  }
  return t
}

/** Product of two polynomials modulo the generator, bits reflected. */
function multiply(a: number, b: number): number {
  let factor = b
  let product = 0
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= factor
    factor = factor & 1 ? (factor >>> 1) ^ polynomial : factor >>> 1
  }
  return product
}

/** x to the powers of 8, 16, 32, … modulo the generator: the same for every batch. */
const squares = Int32Array.from({ length: 32 })
squares[0] = 1 << 23
for (let i = 1; i < squares.length; i++) {
  squares[i] = multiply(squares[i - 1] as number, squares[i - 1] as number)
}

/** x to the power of 8·n modulo the generator; `n` below 2^31. */
function powerOfX(n: number): number {
  let result = 1 << 31
  for (let i = 0, rest = n; rest > 0; i++, rest >>>= 1) {
    if (rest & 1) result = multiply(squares[i] as number, result)
  }
  return result
}

interface Routine {
  readonly data: Uint8Array
  readonly update: (start: number, end: number, crc: number) => number
}

interface WebAssemblyGlobal {
  readonly WebAssembly: {
    readonly Module: new (bytes: Uint8Array) => object
    readonly Instance: new (
      module: object,
    ) => { readonly exports: { readonly m: { readonly buffer: ArrayBuffer }; readonly u: Routine['update'] } }
  }
}

const routine = assemble()

function assemble(): Routine {
  const { Module, Instance } = (globalThis as unknown as WebAssemblyGlobal).WebAssembly
  const { m: memory, u: update } = new Instance(new Module(routineBytes())).exports
  new Int32Array(memory.buffer, 0, tables.length).set(tables)
  return { data: new Uint8Array(memory.buffer, dataStart), update }
}

/** The module in WebAssembly's binary form: one memory `m`, one function `u(start, end, crc)`. */
function routineBytes(): Uint8Array {
  const [start, end, crc, word] = [0, 1, 2, 3]
  const get = (local: number): number[] => [0x20, local]
  const set = (local: number): number[] => [0x21, local]
  const constant = (value: number): number[] => [0x41, ...signed(value)]
  const [add, and, xor, shiftLeft, shiftRight] = [0x6a, 0x71, 0x73, 0x74, 0x76]
  const load = (offset: number): number[] => [0x28, 0x02, ...unsigned(offset)]
  const loadByte = [0x2d, 0x00, 0x00]

  const lookUps: number[] = []
  for (let i = 0; i < 16; i++) {
    const shift = (i & 3) * 8
    const index = shift === 0 ? [...constant(2), shiftLeft] : [...constant(shift - 2), shiftRight]
    lookUps.push(...get(word + (i >> 2)), ...index, ...constant(0x3fc), and, ...load((15 - i) * 1024))
    if (i > 0) lookUps.push(xor)
  }
  const step16 = [
    ...[0x02, 0x40, 0x03, 0x40],
    ...[...get(start), ...constant(16), add, ...get(end), 0x4b, 0x0d, 1],
    ...[...get(start), ...load(0), ...get(crc), xor, ...set(word)],
    ...[1, 2, 3].flatMap((i) => [...get(start), ...load(i * 4), ...set(word + i)]),
    ...[...lookUps, ...set(crc)],
    ...[...get(start), ...constant(16), add, ...set(start), 0x0c, 0, 0x0b, 0x0b],
  ]
  const step1 = [
    ...[0x02, 0x40, 0x03, 0x40],
    ...[...get(start), ...get(end), 0x4f, 0x0d, 1],
    ...[...get(crc), ...get(start), ...loadByte, xor, ...constant(255), and, ...constant(2), shiftLeft, ...load(0)],
    ...[...get(crc), ...constant(8), shiftRight, xor, ...set(crc)],
    ...[...get(start), ...constant(1), add, ...set(start), 0x0c, 0, 0x0b, 0x0b],
  ]
  const body = [1, 4, 0x7f, ...step16, ...step1, ...get(crc), 0x0b]
  const section = (id: number, content: number[]): number[] => [id, ...unsigned(content.length), ...content]
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 3, 0x7f, 0x7f, 0x7f, 1, 0x7f]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, pages]),
    ...section(7, [2, 1, 0x6d, 2, 0, 1, 0x75, 0, 0]),
    ...section(10, [1, ...unsigned(body.length), ...body]),
  ])
}

function unsigned(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest >>>= 7
  }
  bytes.push(rest)
  return bytes
}

function signed(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 63 || rest < -64) {
    bytes.push((rest & 0x7f) | 0x80)
    rest >>= 7
  }
  bytes.push(rest & 0x7f)
  return bytes
}
