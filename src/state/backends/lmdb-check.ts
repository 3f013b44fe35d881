/**
 * Goes through a data file of LMDB page by page before LMDB maps it: LMDB follows whatever stands on a page, and a damaged one
 * gives wrong rows or ends the process. All of a snapshot is looked at: the headers, the trees down to each row, and the
 * list of free pages, for a page that is in use and said to be free would be overwritten.
 * The layout is that of LMDB's data version 2 with 64 bits as `lmdb` 3 writes it, little-endian.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import {
  fail,
  Fault,
  headerBytes,
  invalid,
  type Meta,
  number64,
  snapshotOf,
  type Tree,
  treeAt,
  viewOf,
} from './lmdb-headers.ts'

/** Where a row lies that is looked at. */
export interface FoundRow {
  readonly database: string
  readonly bytes: Uint8Array
  readonly keyFrom: number
  readonly keyTo: number
  readonly valueFrom: number
  readonly valueTo: number
}

export interface FileCheck {
  /** What is wrong with a row; undefined: nothing. */
  row(row: FoundRow): string | undefined
  /** What is wrong with the names of its databases, and how many rows each has, after all rows were looked at. */
  databases(rows: ReadonlyMap<string, number>): string | undefined
}

export interface CheckedFile {
  /** What is wrong, and where; undefined: nothing. */
  readonly fault: string | undefined
  /** The snapshot that was looked at: the one that LMDB will open. */
  readonly transaction: number
}

const flag = { branch: 1, leaf: 2, overflow: 4 } as const
const node = { big: 1, database: 2 } as const
const recordBytes = 48
const windowBytes = 64 * 1024
const mostWindows = 128

/** Looks at the file, if there is one; one without a byte is as good as none. */
export function checkFile(file: string, check: FileCheck): CheckedFile {
  if (!existsSync(file)) return { fault: undefined, transaction: 0 }
  const handle = openSync(file, 'r')
  try {
    const { size } = fstatSync(handle)
    if (size === 0) return { fault: undefined, transaction: 0 }
    const walk = new Walk(handle, size, check)
    try {
      walk.run()
      return { fault: undefined, transaction: walk.transaction }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return { fault: `${file}: ${error.message}`, transaction: -1 }
    }
  } finally {
    closeSync(handle)
  }
}

class Walk {
  readonly #handle: number
  readonly #size: number
  readonly #check: FileCheck
  readonly #windows = new Map<number, Uint8Array>()
  #meta!: Meta
  #pages = 0
  /** Pages that were met, a bit each. */
  #met = new Uint8Array(0)
  transaction = 0

  constructor(handle: number, size: number, check: FileCheck) {
    this.#handle = handle
    this.#size = size
    this.#check = check
  }

  run(): void {
    const meta = snapshotOf(this.#handle)
    this.#meta = meta
    this.transaction = meta.transaction
    this.#pages = Math.ceil(this.#size / meta.pageSize)
    this.#met = new Uint8Array((this.#pages >> 3) + 1)
    const databases: Array<readonly [string, Tree]> = []
    this.#tree('the list of databases', meta.main, compareBytes, (page, key, to, value, end, flags) => {
      const name = Buffer.from(page.subarray(key, to)).toString('latin1').replace(/\0$/, '')
      if (flags !== node.database || end - value !== recordBytes) fail(`the record of the database ${name} is damaged`)
      databases.push([name, treeAt(viewOf(page), value)])
    })
    for (const [name, tree] of databases) {
      if (tree.flags !== 0) fail(`the record of the database ${name} is damaged`)
      this.#tree(`the database ${name}`, tree, compareBytes, (bytes, keyFrom, keyTo, valueFrom, valueTo, flags) => {
        if (flags !== 0) fail(`a row of the database ${name} is damaged`)
        const what = this.#check.row({ database: name, bytes, keyFrom, keyTo, valueFrom, valueTo })
        if (what !== undefined) fail(what)
      })
    }
    const what = this.#check.databases(new Map(databases.map(([name, { entries }]) => [name, entries])))
    if (what !== undefined) fail(what)
    this.#freePages(meta)
  }

  #tree(name: string, tree: Tree, compare: Compare, visit: Visit): void {
    const counted = new Counted(name, compare, visit)
    if (tree.root !== invalid) this.#page(tree.root, tree.depth, counted, undefined, undefined)
    const fits =
      counted.branchPages === tree.branchPages &&
      counted.leafPages === tree.leafPages &&
      counted.overflowPages === tree.overflowPages &&
      counted.entries === tree.entries &&
      (tree.root === invalid) === (tree.depth === 0)
    if (!fits)
      fail(`${name} has ${counted.entries} rows where its record says ${tree.entries}, or other pages than it says`)
  }

  /** A page and all below it, whose keys are not less than `low` and less than `high`. */
  #page(number: number, depth: number, tree: Counted, low: Key | undefined, high: Key | undefined): void {
    const { pageSize } = this.#meta
    const page = this.#read(number, 1, tree.name)
    const view = viewOf(page)
    const isLeaf = depth === 1
    const lower = view.getUint16(20, true)
    const upper = view.getUint16(22, true)
    const count = lower >> 1
    const isDamaged =
      depth < 1 ||
      view.getUint16(16, true) !== 0 ||
      view.getUint16(18, true) !== (isLeaf ? flag.leaf : flag.branch) ||
      (lower & 1) !== 0 ||
      lower > upper ||
      upper > pageSize - headerBytes ||
      count === 0
    if (isDamaged) this.#damaged(number, tree.name)
    if (isLeaf) tree.leafPages++
    else tree.branchPages++
    let used = 0
    let before: Key | undefined = low
    let isFirst = true
    for (let i = 0; i < count; i++) {
      const at = view.getUint16(headerBytes + 2 * i, true) + headerBytes
      if ((at & 1) !== 0 || at < upper + headerBytes || at + 8 > pageSize) this.#damaged(number, tree.name)
      const flags = view.getUint16(at + 4, true)
      const keyFrom = at + 8
      const keyTo = keyFrom + view.getUint16(at + 6, true)
      const size = view.getUint32(at, true)
      const end = isLeaf ? keyTo + ((flags & node.big) !== 0 ? 24 : size) : keyTo
      if (end > pageSize) this.#damaged(number, tree.name)
      used += (end - at + 1) & ~1
      const key: Key = { bytes: page, from: keyFrom, to: keyTo }
      // The first key of a branch stands for all that is less than the second.
      if (isLeaf || i > 0) {
        const order = before === undefined ? 1 : tree.compare(key, before)
        if (order < 0 || (order === 0 && !isFirst) || (high !== undefined && tree.compare(key, high) >= 0)) {
          this.#damaged(number, tree.name)
        }
        before = key
        isFirst = false
      }
      if (isLeaf) this.#leafNode(tree, number, { page, view, flags, keyFrom, keyTo, size })
      else {
        const child = size + flags * 2 ** 32
        const next = i + 1 < count ? this.#keyOf(page, view, number, i + 1, tree) : high
        this.#page(child, depth - 1, tree, i === 0 ? low : key, next)
      }
    }
    if (used !== pageSize - headerBytes - upper) this.#damaged(number, tree.name)
  }

  #keyOf(page: Uint8Array, view: DataView, number: number, i: number, tree: Counted): Key {
    const at = view.getUint16(headerBytes + 2 * i, true) + headerBytes
    if (at + 8 > page.length) this.#damaged(number, tree.name)
    const from = at + 8
    return { bytes: page, from, to: Math.min(page.length, from + view.getUint16(at + 6, true)) }
  }

  #leafNode(tree: Counted, number: number, { page, view, flags, keyFrom, keyTo, size }: Found): void {
    tree.entries++
    if ((flags & node.big) === 0) {
      tree.visit(page, keyFrom, keyTo, keyTo, keyTo + size, flags)
      return
    }
    const { pageSize } = this.#meta
    const first = number64(view, keyTo)
    const pages = number64(view, keyTo + 16)
    // A value that has become shorter keeps the pages that it had.
    if (pages < Math.floor((headerBytes - 1 + size) / pageSize) + 1) this.#damaged(number, tree.name)
    const bytes = this.#read(first, pages, tree.name)
    const head = viewOf(bytes)
    if (head.getUint16(18, true) !== flag.overflow || head.getUint32(20, true) !== pages)
      this.#damaged(first, tree.name)
    tree.overflowPages += pages
    const row = new Uint8Array(keyTo - keyFrom + size)
    row.set(page.subarray(keyFrom, keyTo))
    row.set(bytes.subarray(headerBytes, headerBytes + size), keyTo - keyFrom)
    tree.visit(row, 0, keyTo - keyFrom, keyTo - keyFrom, row.length, flags & ~node.big)
  }

  /** Pages in a row, each of them met for the first time; of several only the first has a header. */
  #read(number: number, count: number, name: string): Uint8Array {
    const { pageSize, lastPage, transaction } = this.#meta
    if (number < 2 || number + count - 1 > lastPage) fail(`${name} refers to page ${number}, which it has not`)
    if ((number + count) * pageSize > this.#size) {
      fail(`it ends at byte ${this.#size}, before page ${number} (byte ${number * pageSize}) of ${name}`)
    }
    for (let i = number; i < number + count; i++) {
      if (!this.#meet(i)) fail(`page ${i} (byte ${i * pageSize}) is in use twice, at last by ${name}`)
    }
    const bytes = count === 1 ? this.#pageAt(number * pageSize) : this.#pagesAt(number * pageSize, count * pageSize)
    const view = viewOf(bytes)
    if (number64(view, 0) !== number || number64(view, 8) > transaction) this.#damaged(number, name)
    return bytes
  }

  #pageAt(at: number): Uint8Array {
    const { pageSize } = this.#meta
    const start = at - (at % windowBytes)
    let window = this.#windows.get(start)
    if (window === undefined) {
      window = this.#pagesAt(start, windowBytes)
      if (this.#windows.size >= mostWindows) {
        for (const oldest of this.#windows.keys()) {
          this.#windows.delete(oldest)
          break
        }
      }
    } else this.#windows.delete(start)
    this.#windows.set(start, window)
    return window.subarray(at - start, at - start + pageSize)
  }

  #pagesAt(at: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length; ) {
      const read = readSync(this.#handle, bytes, done, length - done, at + done)
      if (read === 0) break
      done += read
    }
    return bytes
  }

  #meet(page: number): boolean {
    const [byte, bit] = [page >> 3, 1 << (page & 7)]
    const before = this.#met[byte] as number
    this.#met[byte] = before | bit
    return (before & bit) === 0
  }

  /**
   * The pages that may be written anew: each record has their number, then a page's number each, or the length of a run
   * below zero before the first page of the run; places without a page are zero.
   */
  #freePages(meta: Meta): void {
    let beyond = 0
    const free = (first: number, count: number): void => {
      if (first < 2 || first + count - 1 > meta.lastPage)
        fail(`its list of free pages tells of page ${first}, which it has not`)
      for (let page = first; page < first + count; page++) {
        if (page >= this.#pages) beyond++
        else if (!this.#meet(page))
          fail(`page ${page} (byte ${page * meta.pageSize}) is in use, and in the list of free pages`)
      }
    }
    this.#tree('the list of free pages', meta.free, compareNumbers, (bytes, _from, _to, valueFrom, valueTo, flags) => {
      const view = viewOf(bytes)
      const room = (valueTo - valueFrom) / 8
      const count = room >= 1 ? number64(view, valueFrom) : -1
      if (flags !== 0 || !Number.isInteger(room) || count < 0 || count > room - 1)
        fail('its list of free pages is damaged')
      for (let i = 1; i <= count; i++) {
        const entry = Number(view.getBigInt64(valueFrom + 8 * i, true))
        if (entry > 0) free(entry, 1)
        else if (entry < 0) {
          // A run may be cut from its length by the end of a record: then only its first page is told of.
          const next = i < count ? Number(view.getBigInt64(valueFrom + 8 * ++i, true)) : 0
          if (next > 0) free(next, -entry)
        }
      }
    })
    if (meta.lastPage + 1 - this.#pages > beyond)
      fail(`it ends at byte ${this.#size}, before its last page ${meta.lastPage}`)
  }

  #damaged(number: number, name: string): never {
    fail(`page ${number} (byte ${number * this.#meta.pageSize}) of ${name} is damaged`)
  }
}

interface Key {
  readonly bytes: Uint8Array
  readonly from: number
  readonly to: number
}

interface Found {
  readonly page: Uint8Array
  readonly view: DataView
  readonly flags: number
  readonly keyFrom: number
  readonly keyTo: number
  readonly size: number
}

type Compare = (a: Key, b: Key) => number
type Visit = (
  bytes: Uint8Array,
  keyFrom: number,
  keyTo: number,
  valueFrom: number,
  valueTo: number,
  flags: number,
) => void

class Counted {
  readonly name: string
  readonly compare: Compare
  readonly visit: Visit
  branchPages = 0
  leafPages = 0
  overflowPages = 0
  entries = 0

  constructor(name: string, compare: Compare, visit: Visit) {
    this.name = name
    this.compare = compare
    this.visit = visit
  }
}

function compareBytes(a: Key, b: Key): number {
  const length = Math.min(a.to - a.from, b.to - b.from)
  for (let i = 0; i < length; i++) {
    const difference = (a.bytes[a.from + i] as number) - (b.bytes[b.from + i] as number)
    if (difference !== 0) return difference
  }
  return a.to - a.from - (b.to - b.from)
}

function compareNumbers(a: Key, b: Key): number {
  if (a.to - a.from !== 8 || b.to - b.from !== 8) fail('its list of free pages is damaged')
  return number64(viewOf(a.bytes), a.from) - number64(viewOf(b.bytes), b.from)
}
