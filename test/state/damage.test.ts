/**
 * Files of stores that were damaged while nobody had them open: what is found in the end is what an undamaged run has, by the rows that
 * are left or by the changelog, and what was wrong is told. `STATE_DAMAGES` says how many damages, `STATE_DAMAGE_SEED` which.
 */
import assert from 'node:assert/strict'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { lmdbBackends } from '../../src/state/backends.ts'
import type { StoreBackend, StoreBackendFactory } from '../../src/state/contract.ts'
import { hashOf } from '../../src/state/table/cell-table.ts'

const applicationId = 'app'
const form = 'numbers'
const asked = process.env.STATE_DAMAGES
const most = Number(asked ?? 500)
const seed = Number(process.env.STATE_DAMAGE_SEED ?? 1)
/** What the suite spends where nobody asked for a number. */
const budgetMs = asked === undefined ? 60_000 : Number.POSITIVE_INFINITY
/** Files in memory where the system has such: each damage flushes some dozen times. */
const memory = '/dev/shm'
const folder = mkdtempSync(join(existsSync(memory) ? memory : tmpdir(), 'millrace-damage-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** `small`: rows in blocks. `ordered`: small rows that were walked over. `large`: rows by themselves, some over several pages. */
const stores = ['small', 'ordered', 'large'] as const
type StoreName = (typeof stores)[number]
const partitions = [0, 1]

interface Change {
  readonly key: string
  readonly value: string | null
}

/** A store's changelog is all that was ever written to it; its offsets are places in this list. */
class Source {
  readonly changes = new Map<string, Change[]>()
  /** By the last change that there was: what is expected is asked for again and again. */
  readonly #rows = new WeakMap<Change, Record<string, string>>()
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  log(store: StoreName, partition: number): Change[] {
    const id = `${store}/${partition}`
    const known = this.changes.get(id) ?? []
    this.changes.set(id, known)
    return known
  }

  grow(store: StoreName, partition: number, count: number): void {
    const random = this.#random
    const log = this.log(store, partition)
    for (let i = 0; i < count; i++) {
      const key = `key-${random.int(700)}`
      const length =
        store === 'large' ? 300 + (random.int(30) === 0 ? random.int(12_000) : random.int(300)) : random.int(24)
      const value = random.int(6) === 0 ? null : `${log.length}:${'x'.repeat(length)}`
      log.push({ key, value })
    }
  }

  expected(store: StoreName, partition: number): Record<string, string> {
    const log = this.log(store, partition)
    const last = log.at(-1) as Change
    const known = this.#rows.get(last)
    if (known !== undefined) return known
    const rows = new Map<string, string>()
    for (const { key, value } of log) {
      if (value === null) rows.delete(key)
      else rows.set(key, value)
    }
    const expected = Object.fromEntries(rows)
    this.#rows.set(last, expected)
    return expected
  }

  /** Writes what the store does not have yet, in several commits. */
  catchUp(backend: StoreBackend, store: StoreName, partition: number): void {
    const log = this.log(store, partition)
    const checkpoint = backend.checkpoint()
    if (checkpoint === undefined) backend.wipe()
    const step = Math.ceil(log.length / 7)
    for (let from = checkpoint?.changelogOffset ?? 0; from < log.length; from += step) {
      const to = Math.min(log.length, from + step)
      const last = new Map(log.slice(from, to).map(({ key, value }) => [key, value]))
      const rows = [...last].map(
        ([key, value]) => [Buffer.from(key), value === null ? null : Buffer.from(value)] as const,
      )
      if (backend.inHashOrder && store !== 'large') backend.applyRows?.(hashedRows(rows), 0, rows.length, at(to))
      else backend.apply(rows, at(to))
    }
  }
}

const at = (offset: number) => ({ changelogOffset: offset, commitId: `1.${offset}`, topicId: 'topic' })

function hashedRows(
  rows: ReadonlyArray<readonly [Buffer, Buffer | null]>,
): Parameters<NonNullable<StoreBackend['applyRows']>>[0] {
  const sorted = rows.map(([key, value]) => ({ key, value, hash: hashOf(key.toString('latin1')) >>> 0 }))
  sorted.sort((a, b) => a.hash - b.hash)
  const row = (place: number) => sorted[place] as (typeof sorted)[number]
  const value = (place: number): Uint8Array | null => row(place).value
  return {
    count: sorted.length,
    key: (place) => row(place).key.toString('latin1'),
    value,
    hashed: {
      hashes: Uint32Array.from(sorted, ({ hash }) => hash),
      keyLength: (place) => row(place).key.length,
      writeKey: (place, target, from) => {
        target.set(row(place).key, from)
        return from + row(place).key.length
      },
      value,
      touch: () => undefined,
    },
  }
}

function open(dir: string, aside: string[]): StoreBackendFactory {
  return lmdbBackends({
    dir,
    applicationId,
    onQuarantine: (where, reason) => void aside.push(`${where}: ${reason}`),
  })
}

function contentOf(backend: StoreBackend): Record<string, string> {
  const rows: Record<string, string> = {}
  for (const [key, value] of backend.range(undefined, undefined))
    rows[Buffer.from(key).toString('latin1')] = Buffer.from(value).toString('latin1')
  return rows
}

/** Brings all stores up to their changelogs, as a start does. */
function run(dir: string, source: Source, aside: string[], then?: () => void): void {
  const factory = open(dir, aside)
  for (const partition of partitions) {
    for (const store of stores) {
      const backend = factory.open(store, partition, form)
      source.catchUp(backend, store, partition)
      if (store === 'ordered') contentOf(backend)
    }
  }
  then?.()
  factory.close()
}

function assertWhole(dir: string, source: Source, aside: string[]): void {
  const factory = open(dir, aside)
  for (const partition of partitions) {
    for (const store of stores) {
      const backend = factory.open(store, partition, form)
      const expected = source.expected(store, partition)
      for (const [key, value] of Object.entries(expected)) {
        const found = backend.getAt?.(key)
        const text = found && Buffer.from(found).toString('latin1')
        if (text !== value) assert.equal(text, value, `${store}/${partition} ${key}`)
      }
      assert.equal(backend.checkpoint()?.changelogOffset, source.log(store, partition).length)
      if (store !== 'small') assert.deepEqual(contentOf(backend), expected)
      assert.equal(backend.entries(), Object.keys(expected).length)
    }
  }
  factory.close()
}

const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(dir, name)).isFile())

type Damage = (random: Random, dir: string, name: string, scene: Scene) => string

const damages: Readonly<Record<string, Damage>> = {
  bit(random, dir, name) {
    const bytes = readFileSync(join(dir, name))
    if (bytes.length === 0) return 'nothing to flip'
    const place = random.int(bytes.length)
    bytes[place] = (bytes[place] as number) ^ (1 << random.int(8))
    writeFileSync(join(dir, name), bytes)
    return `byte ${place}`
  },
  cut(random, dir, name) {
    const { size } = statSync(join(dir, name))
    const length = random.int(4) === 0 ? 4096 * random.int(Math.ceil(size / 4096) + 1) : random.int(size + 1)
    truncateSync(join(dir, name), Math.min(size, length))
    return `to ${length}`
  },
  zeroed(random, dir, name) {
    const bytes = readFileSync(join(dir, name))
    const sector = random.int(2) === 0 ? 512 : 4096
    const place = sector * random.int(Math.ceil(bytes.length / sector))
    bytes.fill(0, place, Math.min(bytes.length, place + sector))
    writeFileSync(join(dir, name), bytes)
    return `${sector} bytes at ${place}`
  },
  swapped(_random, dir, name) {
    const other = name.includes('partition-0') ? name.replace('partition-0', 'partition-1') : name.replace('-1', '-0')
    if (other !== name) cpSync(join(dir, other), join(dir, name))
    return `with ${other}`
  },
  missing(_random, dir, name) {
    rmSync(join(dir, name))
    return ''
  },
  older(random, dir, name, { older }) {
    const from = older[random.int(older.length)] as string
    if (filesIn(from).includes(name)) cpSync(join(from, name), join(dir, name))
    return from
  },
}

interface Scene {
  readonly source: Source
  readonly newest: string
  readonly older: readonly string[]
}

/** Copies of the files at several moments, the newest after a clean end or with the stores still open. */
function makeScene(number: number, random: Random, isKilled: boolean): Scene {
  const source = new Source(random)
  const dir = join(folder, `scene-${number}`)
  const older: string[] = []
  const newest = join(folder, `newest-${number}`)
  const rounds = 3
  for (let round = 0; round <= rounds; round++) {
    for (const partition of partitions) for (const store of stores) source.grow(store, partition, 300 + random.int(500))
    const copy = round === rounds ? newest : join(folder, `older-${number}-${round}`)
    if (round < rounds) older.push(copy)
    run(dir, source, [], () => isKilled && cpSync(dir, copy, { recursive: true }))
    if (!isKilled) cpSync(dir, copy, { recursive: true })
  }
  return { source, newest, older }
}

describe('files of stores that are damaged', () => {
  test('give what an undamaged run gives, and say so where they are not used', { timeout: 600_000 }, (t) => {
    const random = new Random(seed)
    const scenes = [false, true, false].map((isKilled, i) => makeScene(i, random, isKilled))
    const kinds = Object.keys(damages)
    const startedAt = performance.now()
    let done = 0
    let noticed = 0
    for (; done < most && performance.now() - startedAt < budgetMs; done++) {
      const scene = scenes[done % scenes.length] as Scene
      const kind = kinds[random.int(kinds.length)] as string
      const dir = join(folder, 'damaged')
      rmSync(dir, { recursive: true, force: true })
      cpSync(scene.newest, dir, { recursive: true })
      const files = filesIn(dir)
      const data = files.filter((name) => name.endsWith('data.mdb'))
      const among = random.int(10) === 0 ? files : data
      const name = among[random.int(among.length)] as string
      const place = (damages[kind] as Damage)(random, dir, name, scene)
      const what = `damage ${done} of seed ${seed}: ${kind} ${name} ${place}`
      const aside: string[] = []
      try {
        run(dir, scene.source, aside)
        assertWhole(dir, scene.source, aside)
        // What is written on and read again shows pages that were taken for free ones.
        const length = new Map([...scene.source.changes].map(([id, log]) => [id, log.length]))
        for (const partition of partitions) for (const store of stores) scene.source.grow(store, partition, 400)
        run(dir, scene.source, aside)
        assertWhole(dir, scene.source, aside)
        for (const [id, log] of scene.source.changes) log.length = length.get(id) as number
      } catch (error) {
        throw new Error(`${what}; set aside: ${aside.join()}`, { cause: error })
      }
      assert.ok(aside.length <= 1, `${what}: ${aside.join()}`)
      for (const line of aside) assert.match(line, /partition-[01]\.corrupt-\d+: .+/)
      if (aside.length > 0) noticed++
    }
    t.diagnostic(`${done} damages, ${noticed} of them noticed, STATE_DAMAGE_SEED=${seed}`)
    assert.ok(done > 5 && noticed > 0)
  })
})
