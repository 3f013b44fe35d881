/**
 * What stands in a database beside the rows: whose file it is, which stores are in it and in which form, their checkpoints,
 * and how their blocks lie. As every row, each note has a checksum behind it.
 */
import type { Database } from 'lmdb'
import { checkedLength, checksum, ChecksumWriter } from './checksum.ts'
import type { FileCheck, FoundRow } from './lmdb-check.ts'

export const notesName = 'checkpoints'
/** Raised when rows are laid out differently: data of another format is rebuilt from the changelog. */
const format = 3
/** It comes before all other notes. */
const markKey = '!file'
const formPrefix = 'form/'
const storePrefix = 'store/'

export interface FileOwner {
  readonly applicationId: string
  readonly partition: number
}

/** Name of a store's rows among the databases, and of its checkpoint among the notes. */
export const storeName = (store: string): string => `${storePrefix}${store}`

function identityOf({ applicationId, partition }: FileOwner): number {
  return checksum(0, Buffer.from(`${applicationId}\0${partition}\0`))
}

function markOf({ applicationId, partition }: FileOwner): string {
  return JSON.stringify({ format, applicationId, partition })
}

export class LmdbNotes {
  /** What every checksum of this file begins with. */
  readonly identity: number
  readonly #database: Database<Uint8Array, Uint8Array>
  readonly #owner: FileOwner
  readonly #sum: number
  readonly #writer = new ChecksumWriter()

  constructor(database: Database<Uint8Array, Uint8Array>, owner: FileOwner) {
    this.#database = database
    this.#owner = owner
    this.identity = identityOf(owner)
    this.#sum = checksum(this.identity, Buffer.from(notesName))
  }

  get(name: string): string | undefined {
    const key = Buffer.from(name)
    const found = this.#database.get(key)
    if (found === undefined) return undefined
    const length = checkedLength(checksum(this.#sum, key), found)
    if (length < 0) throw new DamagedRow(`the note ${name}`)
    return Buffer.from(found.subarray(0, length)).toString()
  }

  /** Within a transaction. */
  put(name: string, text: string): void {
    const key = Buffer.from(name)
    void this.#database.put(key, this.#writer.with(checksum(this.#sum, key), Buffer.from(text)))
  }

  remove(name: string): void {
    void this.#database.remove(Buffer.from(name))
  }

  /** Says whose the file is. Within a transaction. */
  mark(): void {
    const key = Buffer.from(markKey)
    void this.#database.put(key, this.#writer.with(checksum(0, key), Buffer.from(markOf(this.#owner))))
  }

  /** The form that the store's rows have; undefined: the store is new here. */
  formOf(store: string): string | undefined {
    return this.get(`${formPrefix}${store}`)
  }

  /** Within a transaction. */
  setForm(store: string, form: string): void {
    this.put(`${formPrefix}${store}`, form)
  }
}

/** What is told of a row that is not the one that was written: the words by which LMDB tells of a page like that. */
export class DamagedRow extends Error {
  constructor(what: string) {
    super(`MDB_CORRUPTED: ${what} does not fit its checksum`)
  }
}

/** Holds what is found in a file against what has to be there. */
export class FileContents implements FileCheck {
  readonly #owner: FileOwner
  readonly #identity: number
  readonly #notesSum: number
  readonly #stores = new Set<string>()
  #database = ''
  #sum = 0
  /** The file says whose it is; one that was only just made does not. */
  isMarked = false

  constructor(owner: FileOwner) {
    this.#owner = owner
    this.#identity = identityOf(owner)
    this.#notesSum = checksum(this.#identity, Buffer.from(notesName))
  }

  row({ database, bytes, keyFrom, keyTo, valueFrom, valueTo }: FoundRow): string | undefined {
    const isNote = database === notesName
    const key = isNote ? Buffer.from(bytes.subarray(keyFrom, keyTo)).toString() : ''
    if (isNote && !this.isMarked) return this.#markFault(key, bytes.subarray(valueFrom, valueTo))
    if (database !== this.#database) {
      this.#database = database
      this.#sum = isNote ? this.#notesSum : checksum(this.#identity, Buffer.from(database))
    }
    const length = checkedLength(checksum(this.#sum, bytes, keyFrom, keyTo), bytes, valueFrom, valueTo)
    if (length < 0) return `a row of '${database}' does not fit its checksum`
    if (key.startsWith(formPrefix)) this.#stores.add(storeName(key.slice(formPrefix.length)))
    return undefined
  }

  databases(found: ReadonlyMap<string, number>): string | undefined {
    for (const store of this.#stores) if (!found.has(store)) return `it has nothing under the name '${store}'`
    for (const [name, rows] of found) {
      const isKnown = name === notesName || this.#stores.has(name)
      if (rows > 0 && !isKnown) return `it has rows under the name '${name}', which it does not know`
    }
    return undefined
  }

  #markFault(key: string, value: Uint8Array): string | undefined {
    const length = checkedLength(checksum(0, Buffer.from(key)), value)
    const mark = length < 0 ? '' : Buffer.from(value.subarray(0, length)).toString()
    if (key !== markKey || mark === '') return `it does not begin with the mark of format ${format}`
    this.isMarked = true
    return mark === markOf(this.#owner) ? undefined : `it is another file: ${mark} instead of ${markOf(this.#owner)}`
  }
}
