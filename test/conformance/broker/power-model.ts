/**
 * What a power cut leaves of a folder: each file as it was when it was forced to the disk last, or as it is, or anything in
 * between. Watches what a program does to the folder through `node:fs`, and shows after each step what might be left.
 */
import { createHash } from 'node:crypto'
import fs, { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'

/** Paths within the folder, with what they hold. */
export type Image = ReadonlyMap<string, Buffer>

interface File {
  now: Buffer
  /** What is on the disk for sure. */
  forced: Buffer
  /** Where each of the writes behind `forced` begins. */
  writes: readonly number[]
}

/** Files that are of no account: which process holds the folder. */
const ignored = new Set(['lock', 'owner'])
const watchedCalls = [
  'openSync',
  'closeSync',
  'writeSync',
  'writeFileSync',
  'fdatasyncSync',
  'fsyncSync',
  'truncateSync',
  'ftruncateSync',
  'renameSync',
  'rmSync',
] as const
type Call = (typeof watchedCalls)[number]
type Step = (what: string) => void

export class PoweredFolder {
  readonly root: string
  #files = new Map<string, File>()
  /** The entries that each folder has on the disk for sure; a folder within has none of its own here. */
  #entries = new Map<string, ReadonlyMap<string, File | undefined>>()
  readonly #open = new Map<number, string>()
  readonly #originals = {} as Record<Call, (...args: unknown[]) => unknown>
  #step: Step = () => undefined
  #depth = 0

  constructor(root: string) {
    this.root = root
  }

  /** Calls `step` behind each change, until `unwatch`. */
  watch(step: Step): void {
    this.#step = step
    for (const name of watchedCalls) {
      const original = fs[name] as (...args: unknown[]) => unknown
      this.#originals[name] = original
      Object.assign(fs, { [name]: (...args: unknown[]) => this.#called(name, args) })
    }
    syncBuiltinESMExports()
  }

  unwatch(): void {
    Object.assign(fs, this.#originals)
    syncBuiltinESMExports()
  }

  /** The same files in another folder, with the same of them on the disk: the process was killed, and power is still there. */
  copyTo(root: string): PoweredFolder {
    const copy = new PoweredFolder(root)
    const copies = new Map([...this.#files.values()].map((file) => [file, { ...file }]))
    copy.#files = new Map([...this.#files].map(([path, file]) => [path, copies.get(file) as File]))
    copy.#entries = new Map(
      [...this.#entries].map(([path, entries]) => {
        const own = [...entries].map(([name, file]) => [name, file && (copies.get(file) ?? file)] as const)
        return [path, new Map(own)]
      }),
    )
    writeImage(root, new Map([...this.#files].map(([path, { now }]) => [path, now])))
    return copy
  }

  /** What may be left, by what came to the disk. */
  *images(): Generator<readonly [what: string, image: Image]> {
    const all = (content: (file: File) => Buffer): Map<string, Buffer> =>
      new Map([...this.#files].map(([path, file]) => [path, content(file)]))
    yield ['nothing that was not forced', all(({ forced }) => forced)]
    yield ['everything', all(({ now }) => now)]
    for (const [path, file] of this.#files) {
      if (file.now.equals(file.forced)) continue
      yield [`of what was not forced only ${path}`, all((each) => (each === file ? file.now : each.forced))]
      const [first, second] = file.writes
      if (first === undefined || second === undefined) continue
      const holed = Buffer.from(file.now).fill(0, first, second)
      yield [
        `of what was not forced only later writes of ${path}`,
        all((each) => (each === file ? holed : each.forced)),
      ]
    }
    // Files came, went or were renamed, and their folders do not tell of it yet.
    const named = this.#namedFiles('')
    yield [
      'the names of before, nothing that was not forced',
      new Map(named.map(([path, { forced }]) => [path, forced])),
    ]
    yield ['the names of before, everything', new Map(named.map(([path, { now }]) => [path, now]))]
  }

  #namedFiles(folder: string): Array<readonly [path: string, file: File]> {
    return [...(this.#entries.get(folder) ?? [])].flatMap(([name, file]) => {
      const path = join(folder, name)
      return file === undefined ? this.#namedFiles(path) : [[path, file] as const]
    })
  }

  #called(name: Call, args: unknown[]): unknown {
    const original = this.#originals[name]
    // Some of them call others.
    this.#depth++
    try {
      const result = original.apply(fs, args)
      if (this.#depth === 1) this.#note(name, args, result)
      return result
    } finally {
      this.#depth--
    }
  }

  #note(name: Call, args: unknown[], result: unknown): void {
    const [first, second] = args
    const path = typeof first === 'number' ? this.#open.get(first) : this.#within(first)
    if (path === undefined || ignored.has(path)) return
    if (name === 'openSync') this.#open.set(result as number, path)
    else if (name === 'closeSync') this.#open.delete(first as number)
    const isFolder = fs.statSync(join(this.root, path), { throwIfNoEntry: false })?.isDirectory() === true
    if (name === 'closeSync' || (name === 'openSync' && (isFolder || this.#isAsItWas(path)))) return
    if (name === 'fdatasyncSync' || name === 'fsyncSync') this.#force(path, isFolder)
    else if (name === 'rmSync') this.#remove(path)
    else if (name === 'renameSync') this.#rename(path, this.#within(second) as string)
    else this.#changed(path, name === 'writeFileSync' && (args[2] as { flush?: boolean } | undefined)?.flush === true)
    this.#step(`${name} ${path}`)
  }

  #within(path: unknown): string | undefined {
    if (typeof path !== 'string') return undefined
    const inside = relative(this.root, path)
    return inside.startsWith('..') ? undefined : inside
  }

  #changed(path: string, forced: boolean): void {
    const now = this.#read(path)
    const file = this.#files.get(path)
    if (file === undefined) {
      const writes = now.length > 0 && !forced ? [0] : []
      this.#files.set(path, { now, forced: forced ? now : Buffer.alloc(0), writes })
      return
    }
    const appended = now.length > file.now.length && now.subarray(0, file.forced.length).equals(file.forced)
    file.writes = appended ? [...file.writes, file.now.length] : []
    file.now = now
    if (forced) this.#force(path, false)
  }

  #force(path: string, isFolder: boolean): void {
    if (isFolder) {
      const entries = fs.readdirSync(join(this.root, path), { withFileTypes: true })
      const named = entries.map((entry) => [entry.name, this.#files.get(join(path, entry.name))] as const)
      const known = named.filter(([, file], i) => file !== undefined || entries[i]?.isDirectory() === true)
      this.#entries.set(path, new Map(known))
      return
    }
    const file = this.#files.get(path) as File
    file.forced = file.now
    file.writes = []
  }

  #remove(path: string): void {
    const gone = [...this.#files.keys()].filter((file) => file === path || file.startsWith(path + sep))
    for (const [i, file] of gone.entries()) {
      this.#files.delete(file)
      // A folder goes file by file.
      if (i < gone.length - 1) this.#step(`rmSync ${file}`)
    }
  }

  #rename(from: string, to: string): void {
    this.#files.set(to, this.#files.get(from) as File)
    this.#files.delete(from)
  }

  #isAsItWas(path: string): boolean {
    return this.#files.get(path)?.now.equals(this.#read(path)) === true
  }

  #read(path: string): Buffer {
    return readFileSync(join(this.root, path))
  }
}

export function writeImage(folder: string, image: Image): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [path, content] of image) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
}

export function printOfImage(image: Image): string {
  const hash = createHash('sha256')
  for (const path of [...image.keys()].sort()) hash.update(`${path}\n`).update(image.get(path) as Buffer)
  return hash.digest('hex')
}
