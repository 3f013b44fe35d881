import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { VirtualClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { lmdbBackends } from '../../src/state/backends.ts'
import type { StoreBackend } from '../../src/state/contract.ts'
import { lockStateFolder } from '../../src/state/backends/state-lock.ts'
import { checkpointAt } from '../unit/state/backend-suite.ts'

const dirs: string[] = []
after(() => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
})
function newDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-lmdb-'))
  dirs.push(dir)
  return dir
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

/** Every row is the one of the commit that the checkpoint names. */
function assertExactlyAt(backend: StoreBackend, keys: number): number {
  const commit = backend.checkpoint()?.changelogOffset ?? 0
  const expected: Array<[string, string]> = []
  for (let key = 0; commit > 0 && key < keys; key++) {
    if (commit % 3 === 0 && key % 5 === 0) continue
    expected.push([`key-${key}`, text(Buffer.alloc(20 + ((commit + key) % 400), String(commit)))])
  }
  const found = [...backend.range(undefined, undefined)].map(([key, value]) => [text(key), text(value)])
  assert.deepEqual(
    found,
    expected.sort(([a], [b]) => (a < b ? -1 : 1)),
  )
  return commit
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve))
}

describe('a killed process', () => {
  test('leaves stores that open and lie exactly at their checkpoint', async () => {
    const dir = newDir()
    const random = new Random(7)
    const keys = 200
    let before = [0, 0]
    for (let round = 0; round < 12; round++) {
      const script = join(import.meta.dirname, 'lmdb-child.ts')
      const child = spawn(process.execPath, [script, dir, '2', String(keys)], { stdio: ['ignore', 'pipe', 'inherit'] })
      const opened = new Promise((resolve) => child.stdout.once('data', resolve))
      await Promise.race([opened, ended(child)])
      assert.equal(child.signalCode ?? child.exitCode, null, 'the process ended by itself')
      await sleep(random.int(60))
      child.kill('SIGKILL')
      await ended(child)
      const quarantined: string[] = []
      const factory = lmdbBackends({ dir, applicationId: 'killed', onQuarantine: (folder) => quarantined.push(folder) })
      const commits = [0, 1].map((i) => assertExactlyAt(factory.open(`store-${i}`, 0), keys))
      assert.deepEqual(quarantined, [])
      commits.forEach((commit, i) => {
        assert.ok(commit >= (before[i] as number), `store ${i} fell back from commit ${before[i]} to ${commit}`)
      })
      assert.ok((commits[1] as number) <= (commits[0] as number), 'the second store is written after the first')
      before = commits
      factory.close()
    }
    assert.ok((before[1] as number) > 0, 'no round lived long enough to commit')
  })
})

describe('a process that is killed while it puts rows into the order of their keys', () => {
  test('leaves all of them, and the next one goes on', async () => {
    const rows = 150_000
    const dir = newDir()
    const random = new Random(11)
    const script = join(import.meta.dirname, 'lmdb-walk-child.ts')
    let isInOrder = false
    let killed = 0
    const kills = 7
    for (let round = 0; round <= kills && !isInOrder; round++) {
      const child = spawn(process.execPath, [script, dir, String(rows)], { stdio: ['ignore', 'pipe', 'inherit'] })
      await Promise.race([new Promise((resolve) => child.stdout.once('data', resolve)), ended(child)])
      assert.equal(child.signalCode ?? child.exitCode, null, 'the process ended by itself')
      let walks = false
      const walking = new Promise<void>((resolve) => {
        child.stdout.once('data', () => {
          walks = true
          resolve()
        })
      })
      // The last one may go on to the end.
      if (round < kills) await sleep(random.int(20 + 40 * round))
      else await Promise.race([walking, ended(child), sleep(60_000, undefined, { ref: false })])
      child.kill('SIGKILL')
      await ended(child)
      if (!walks) killed++
      const quarantined: string[] = []
      const factory = lmdbBackends({
        dir,
        applicationId: 'killed',
        onQuarantine: (_, reason) => quarantined.push(reason),
      })
      const backend = factory.open('numbers', 0)
      assert.deepEqual(quarantined, [])
      isInOrder = !backend.inHashOrder
      assert.equal(backend.entries(), rows)
      for (let n = round; n < rows; n += 41) {
        // The value comes behind eight bytes of its time.
        assert.equal(text(backend.getAt?.(`key-${n}`)?.slice(8) ?? new Uint8Array(0)), String(n))
      }
      if (isInOrder) assert.equal([...backend.range(undefined, undefined)].length, rows)
      factory.close()
    }
    assert.ok(killed > 0, 'no round was killed before it had its rows in order')
    assert.ok(isInOrder, 'no round lived long enough to put them in order')
  })
})

describe('files that cannot be read', () => {
  const options = (dir: string, aside: string[]) => ({
    dir,
    applicationId: 'app',
    clock: new VirtualClock(1234),
    onQuarantine: (folder: string, reason: string) => void aside.push(`${folder}: ${reason}`),
  })
  const filled = (dir: string): string => {
    const factory = lmdbBackends({ dir, applicationId: 'app' })
    const backend = factory.open('store', 3)
    const rows = Array.from({ length: 2000 }, (_, i) => [Buffer.from(`key-${i}`), Buffer.alloc(300, 'x')] as const)
    backend.apply(rows, checkpointAt(1))
    factory.close()
    return join(dir, 'app', 'partition-3')
  }

  test('are set aside, and the store begins anew without a checkpoint', () => {
    const dir = newDir()
    const folder = filled(dir)
    writeFileSync(join(folder, 'data.mdb'), Buffer.alloc(100_000, 'not a database'))
    const aside: string[] = []
    const factory = lmdbBackends(options(dir, aside))
    const backend = factory.open('store', 3)
    assert.equal(backend.checkpoint(), undefined)
    assert.equal(backend.entries(), 0)
    backend.apply([[Buffer.from('a'), Buffer.from('1')]], checkpointAt(1))
    assert.equal(text(backend.get(Buffer.from('a')) as Uint8Array), '1')
    assert.equal(aside.length, 1)
    assert.ok(readdirSync(join(dir, 'app')).includes('partition-3.corrupt-1234'))
    factory.close()
  })

  test('a file that was cut off is found out without ending the process', () => {
    const dir = newDir()
    const folder = filled(dir)
    truncateSync(join(folder, 'data.mdb'), 40_960)
    const aside: string[] = []
    const factory = lmdbBackends(options(dir, aside))
    const backend = factory.open('store', 3)
    // Found at opening, or at the first look at a page that is gone; then the store is replaced under the reader.
    let failure: unknown
    if (aside.length === 0) {
      assert.throws(
        () => [...backend.range(undefined, undefined)],
        (error) => {
          failure = error
          return (error as { code?: string }).code === 'STORE_CORRUPT'
        },
      )
    }
    assert.equal(aside.length, 1, String(failure))
    assert.equal(backend.checkpoint(), undefined)
    backend.apply([[Buffer.from('a'), Buffer.from('1')]], checkpointAt(1))
    assert.equal(backend.entries(), 1)
    factory.close()
  })

  test('files of which two openings ended in a crash are set aside', () => {
    const dir = newDir()
    const folder = filled(dir)
    writeFileSync(`${folder}.opening`, '1')
    const aside: string[] = []
    const once = lmdbBackends(options(dir, aside))
    assert.deepEqual(once.open('store', 3).checkpoint(), checkpointAt(1))
    once.close()
    assert.equal(existsSync(`${folder}.opening`), false)
    writeFileSync(`${folder}.opening`, '2')
    const twice = lmdbBackends(options(dir, aside))
    assert.equal(twice.open('store', 3).checkpoint(), undefined)
    assert.equal(aside.length, 1)
    twice.close()
  })
})

describe('an environment', () => {
  test('grows beyond the address space it began with', () => {
    const factory = lmdbBackends({ dir: newDir(), applicationId: 'app', mapSize: 1024 * 1024 })
    const backend = factory.open('store', 0)
    for (let commit = 0; commit < 10; commit++) {
      const rows = Array.from(
        { length: 1000 },
        (_, i) => [Buffer.from(`${commit}/${i}`), Buffer.alloc(800, 'x')] as const,
      )
      backend.apply(rows, checkpointAt(commit))
    }
    assert.equal(backend.entries(), 10_000)
    factory.close()
  })

  test('keeps stores apart, and what it holds across opening', () => {
    const dir = newDir()
    const factory = lmdbBackends({ dir, applicationId: 'app' })
    const [a, b] = [factory.open('a', 0), factory.open('b', 0)]
    a.apply([[Buffer.from('k'), Buffer.from('a')]], checkpointAt(1))
    b.apply([[Buffer.from('k'), Buffer.from('b')]], checkpointAt(2))
    a.wipe()
    assert.equal(text(b.get(Buffer.from('k')) as Uint8Array), 'b')
    a.close()
    b.close()
    factory.close()
    const again = lmdbBackends({ dir, applicationId: 'app' })
    assert.equal(again.open('a', 0).checkpoint(), undefined)
    assert.deepEqual(again.open('b', 0).checkpoint(), checkpointAt(2))
    assert.equal(again.open('b', 1).checkpoint(), undefined)
    again.close()
  })
})

describe('the lock of a state folder', () => {
  const children: ChildProcess[] = []
  after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const holder = (dir: string): ChildProcess => {
    const lock = JSON.stringify(join(import.meta.dirname, '../../src/state/backends/state-lock.ts'))
    const code = `import(${lock}).then(({ lockStateFolder }) => {
      lockStateFolder(${JSON.stringify(dir)}, 'app'); gc(); console.log('held'); setInterval(() => undefined, 1000) })`
    const child = spawn(process.execPath, ['--expose-gc', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    return child
  }

  test('refuses a second process, and goes with its holder however that one ends', async () => {
    const dir = newDir()
    const child = holder(dir)
    await new Promise((resolve) => child.stdout?.once('data', resolve))
    assert.throws(() => lockStateFolder(dir, 'app'), {
      code: 'STORE_LOCKED',
      message: new RegExp(`in use by the process ${child.pid}`),
    })
    lockStateFolder(dir, 'another-app').release()
    child.kill('SIGKILL')
    await ended(child)
    const lock = lockStateFolder(dir, 'app')
    assert.throws(() => lockStateFolder(dir, 'app'), { code: 'STORE_LOCKED' })
    lock.release()
    lockStateFolder(dir, 'app').release()
  })

  test('a folder that cannot be written is told apart from one that is in use', () => {
    const dir = newDir()
    writeFileSync(join(dir, 'file'), '')
    assert.throws(() => lockStateFolder(join(dir, 'file'), 'app'), { code: 'CONFIG_INVALID' })
  })
})
