/** The headers of a data file of LMDB, and which of them it goes by when it opens the file. */
import { readFileSync, readSync } from 'node:fs'

export const headerBytes = 24
/** Page number of a tree without a page. */
export const invalid = -1
const magic = 0xbeefc0de
const dataVersion = 2
const metaBytes = 168
const metaFlag = 8
const overlappingSync = 0x1000
/** Keys of the list of free pages are numbers. */
const integerKey = 0x08

/** One tree, as its record tells of it. */
export interface Tree {
  readonly flags: number
  readonly depth: number
  readonly branchPages: number
  readonly leafPages: number
  readonly overflowPages: number
  readonly entries: number
  /** -1: it is empty. */
  readonly root: number
}

export interface Meta {
  readonly pageSize: number
  readonly mapSize: number
  readonly flags: number
  readonly free: Tree
  readonly main: Tree
  readonly lastPage: number
  readonly transaction: number
  readonly bootId: bigint
}

/** Ends the walk. */
export class Fault extends Error {}

export function fail(what: string): never {
  throw new Fault(what)
}

/** The snapshot that LMDB chooses, from three headers (`mdb_pick_meta`). */
export function snapshotOf(handle: number): Meta {
  const first = headerAt(handle, 0, 0)
  const { pageSize } = first
  if (pageSize < 512 || pageSize > 65536 || (pageSize & (pageSize - 1)) !== 0) fail('the header at byte 0 is damaged')
  const second = headerAt(handle, pageSize, 1)
  const flushed = headerAt(handle, pageSize / 2, undefined, first)
  const bootId = ownBootId()
  const pick = (a: Meta, b: Meta): Meta => {
    if (b.transaction === 0) return a
    const latest = a.transaction >= b.transaction ? a : b
    if ((latest.bootId !== 0n && latest.bootId === bootId) || (latest.flags & overlappingSync) === 0) return latest
    return a.transaction > b.transaction ? b : a
  }
  const meta = pick(pick(first, second), flushed)
  for (const [at, each] of [
    [0, first],
    [pageSize / 2, flushed],
    [pageSize, second],
  ] as const) {
    if (each === flushed && each.transaction === 0) continue
    const isOdd =
      each.pageSize !== pageSize ||
      (each.flags & ~overlappingSync) !== integerKey ||
      each.mapSize % pageSize !== 0 ||
      each.mapSize > 2 ** 46
    if (isOdd) fail(`the header at byte ${at} is damaged`)
  }
  return meta
}

function headerAt(handle: number, at: number, page: number | undefined, like?: Meta): Meta {
  const bytes = new Uint8Array(metaBytes)
  if (readSync(handle, bytes, 0, metaBytes, at) < metaBytes) fail(`it ends within the header at byte ${at}`)
  const view = viewOf(bytes)
  if (page !== undefined) {
    const isMeta =
      number64(view, 0) === page &&
      view.getUint16(18, true) === metaFlag &&
      view.getUint32(24, true) === magic &&
      view.getUint32(28, true) === dataVersion &&
      number64(view, 32) === 0
    if (!isMeta) fail(`the header at byte ${at} is damaged`)
  }
  const transaction = number64(view, 152)
  if (like !== undefined && transaction === 0) return { ...like, transaction: 0 }
  return {
    pageSize: view.getUint32(48, true),
    mapSize: number64(view, 40),
    flags: view.getUint16(52, true),
    free: treeAt(view, 48),
    main: treeAt(view, 96),
    lastPage: number64(view, 144),
    transaction,
    bootId: view.getBigInt64(160, true),
  }
}

export function treeAt(view: DataView, at: number): Tree {
  const root = view.getBigInt64(at + 40, true)
  return {
    flags: view.getUint16(at + 4, true),
    depth: view.getUint16(at + 6, true),
    branchPages: number64(view, at + 8),
    leafPages: number64(view, at + 16),
    overflowPages: number64(view, at + 24),
    entries: number64(view, at + 32),
    root: root === -1n ? invalid : number64(view, at + 40),
  }
}

export function number64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** What LMDB remembers a boot of the machine by, as it reads it; 0: unknown. */
function ownBootId(): bigint {
  try {
    const [first = ''] = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').split('-')
    return BigInt(`0x${first}`)
  } catch {
    return 0n
  }
}
