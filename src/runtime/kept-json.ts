/**
 * Small files that a process keeps for the next one: JSON with a checksum and a number that rises with each write. Beside
 * it, where that is asked for, lies the last number: without it an older copy, or none, would pass for the newest.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { crc32 } from 'node:zlib'

export type KeptJson =
  | { readonly kind: 'none' }
  | { readonly kind: 'whole'; readonly value: unknown }
  | { readonly kind: 'damaged'; readonly why: string }

export class KeptJsonFile {
  readonly path: string
  readonly #witness: string | undefined
  #n = 0

  constructor(path: string, { witnessed } = { witnessed: false }) {
    this.path = path
    this.#witness = witnessed ? `${path}.last` : undefined
  }

  read(): KeptJson {
    const last = this.#lastNumber()
    this.#n = last ?? 0
    const bytes = bytesOf(this.path)
    if (bytes === undefined) {
      return last === undefined
        ? { kind: 'none' }
        : { kind: 'damaged', why: `it is missing, and was written ${last} times` }
    }
    const content = contentOf(this.path, bytes)
    if (content === undefined) return { kind: 'damaged', why: 'its checksum does not hold' }
    if (content.n < (last ?? 0)) return { kind: 'damaged', why: `it is of write ${content.n}, and ${last} is the last` }
    this.#n = content.n
    return { kind: 'whole', value: content.value }
  }

  /** Whole or not at all. */
  write(value: unknown): void {
    mkdirSync(dirname(this.path), { recursive: true })
    const text = JSON.stringify({ n: ++this.#n, value })
    writeFileSync(`${this.path}.new`, sealed(this.path, text))
    renameSync(`${this.path}.new`, this.path)
    // Behind the file: it may know of one write less, never of one more.
    if (this.#witness === undefined) return
    writeFileSync(`${this.#witness}.new`, sealed(this.#witness, JSON.stringify({ n: this.#n, value: null })))
    renameSync(`${this.#witness}.new`, this.#witness)
  }

  /** Undefined where nothing, or nothing to be trusted, is there: then it tells nothing. */
  #lastNumber(): number | undefined {
    const path = this.#witness
    const bytes = path === undefined ? undefined : bytesOf(path)
    return path === undefined || bytes === undefined ? undefined : contentOf(path, bytes)?.n
  }
}

const sumLength = 8

const sealed = (path: string, text: string): string => `${sumOf(path, Buffer.from(text))} ${text}\n`

/** Of the file's name, too: another file in its place is whole in itself. */
const sumOf = (path: string, text: Uint8Array): string =>
  crc32(text, crc32(basename(path)))
    .toString(16)
    .padStart(sumLength, '0')

function contentOf(path: string, bytes: Buffer): { readonly n: number; readonly value: unknown } | undefined {
  const text = bytes.subarray(sumLength + 1, -1)
  if (bytes.length < sumLength + 2 || bytes.toString('latin1', 0, sumLength) !== sumOf(path, text)) return undefined
  if (bytes[sumLength] !== 0x20 || bytes.at(-1) !== 0x0a) return undefined
  const content = JSON.parse(text.toString('utf8')) as { readonly n?: unknown; readonly value?: unknown }
  return typeof content.n === 'number' ? { n: content.n, value: content.value } : undefined
}

function bytesOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
