/** Durable stores of a running application whose files or changelogs were damaged between two runs. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import { inspectFolder } from '../../src/broker/embedded/files/inspection.ts'
import { policyFor } from '../../src/lanes/tasks/error-policy.ts'
import { EngineError } from '../../src/base/errors.ts'
import { byKey, lastByKey, TestEngine } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-damaged-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const keys = 300
const changelogs = ['running-sum-seen-changelog', 'running-sum-sums-changelog']
const partitionFolder = (name: string, partition: number): string =>
  join(folder, name, 'state', 'running-sum', `partition-${partition}`)

function start(t: TestContext, name: string, more: Record<string, unknown> = {}, application = 'running-sum') {
  return TestEngine.start(t, application, {
    'broker.bootstrap-servers': `embedded:${join(folder, name, 'broker')}`,
    'engine.state.dir': join(folder, name, 'state'),
    'engine.state.store': 'lmdb',
    ...more,
  })
}

async function feed(engine: TestEngine, round: number): Promise<void> {
  const records = Array.from({ length: keys }, (_, i) => ({ key: `key-${i}`, value: round * keys + i }))
  await engine.put('numbers', records)
  await engine.idle()
}

/** A run to its end, with one round of input. */
async function ran(
  t: TestContext,
  name: string,
  round: number,
  more: Record<string, unknown> = {},
): Promise<TestEngine> {
  const engine = await start(t, name, more)
  await engine.reaches('RUNNING')
  await feed(engine, round)
  await assertResults(engine, round + 1)
  await engine.stop()
  return engine
}

async function assertResults(engine: TestEngine, rounds: number): Promise<void> {
  const seen = lastByKey<number[]>(await engine.read('seen'))
  for (let i = 0; i < keys; i++) {
    const expected = Array.from({ length: rounds }, (_, round) => round * keys + i)
    assert.deepEqual(seen[`key-${i}`], expected)
  }
  const sums = lastByKey<number>(await engine.read('sums'))
  for (let mod = 0; mod < 3; mod++) {
    let sum = 0
    for (let n = mod; n < rounds * keys; n += 3) sum += n
    assert.equal(sums[`mod-${mod}`], sum)
  }
}

async function deleteTopics(t: TestContext, name: string): Promise<void> {
  const other = await start(t, name, { 'engine.state.dir': join(folder, name, 'other') }, 'never')
  await other.reaches('RUNNING')
  await other.broker.deleteTopics(changelogs)
  await other.stop()
}

/** Every page that has rows, for some are of snapshots before the last one. */
function eachPage(name: string, damage: (bytes: Buffer, place: number) => void): void {
  const file = join(partitionFolder(name, 1), 'data.mdb')
  const bytes = readFileSync(file)
  for (let place = bytes.indexOf('key-'); place >= 0; place = bytes.indexOf('key-', (place & ~4095) + 4096))
    damage(bytes, place)
  writeFileSync(file, bytes)
}

describe('files of stores that are damaged between two runs', () => {
  const damages: Readonly<Record<string, (name: string) => void>> = {
    'a flipped bit': (name) =>
      eachPage(name, (bytes, place) => {
        bytes[place] = (bytes[place] as number) ^ 4
      }),
    'a zeroed page': (name) => eachPage(name, (bytes, place) => bytes.fill(0, place & ~4095, (place & ~4095) + 4096)),
    'the file of another partition': (name) =>
      cpSync(join(partitionFolder(name, 2), 'data.mdb'), join(partitionFolder(name, 1), 'data.mdb')),
  }
  for (const [what, damage] of Object.entries(damages)) {
    test(`are set aside (${what}), which the log tells, and nothing is wrong in the results`, async (t) => {
      const name = what.replaceAll(' ', '-')
      await ran(t, name, 0)
      damage(name)
      const engine = await ran(t, name, 1)
      const told = engine.log.filter(({ message }) => /set aside/.test(message))
      assert.equal(told.length, 1)
      assert.match(
        told[0]?.message ?? '',
        /partition-1\.corrupt-\d+, and the stores are rebuilt from their changelogs: .+/,
      )
    })
  }
})

describe('changelogs that were deleted under durable stores', () => {
  test('are refused with the files untouched, and written anew from them where that is asked for', async (t) => {
    const name = 'deleted'
    await ran(t, name, 0)
    await deleteTopics(t, name)
    const refused = await start(t, name)
    await refused.reaches('FAILED')
    const { failure } = refused.runtime.view.state()
    assert.equal(failure?.code, 'CHANGELOG_LOST')
    assert.match(failure?.message ?? '', /untouched.*write-anew/)
    await refused.stop()
    assert.deepEqual(
      readdirSync(join(folder, name, 'state', 'running-sum')).filter((entry) => entry.includes('corrupt')),
      [],
    )
    const engine = await ran(t, name, 1, { 'engine.state.lost-changelogs': 'write-anew' })
    assert.ok(
      engine.log.some(({ message }) => /changelogs of \S.* were written anew from the stores on disk/.test(message)),
    )
    // Nothing but the changelogs is left of the state.
    rmSync(join(folder, name, 'state'), { recursive: true })
    await ran(t, name, 2)
  })

  test('are not written from a store that does not have all that was committed', async (t) => {
    const name = 'behind'
    await ran(t, name, 0)
    const kept = join(folder, name, 'kept')
    cpSync(join(folder, name, 'state'), kept, { recursive: true })
    await ran(t, name, 1)
    rmSync(join(folder, name, 'state'), { recursive: true })
    cpSync(kept, join(folder, name, 'state'), { recursive: true })
    await deleteTopics(t, name)
    const refused = await start(t, name, { 'engine.state.lost-changelogs': 'write-anew' })
    await refused.reaches('FAILED')
    const { failure } = refused.runtime.view.state()
    assert.equal(failure?.code, 'CHANGELOG_LOST')
    assert.match(failure?.message ?? '', /does not have all that was committed/)
  })
})

describe('a changelog that has lost its end', () => {
  test('is refused where no store on disk knows of it; once that is accepted it is the one that commits know', async (t) => {
    const name = 'short'
    const memory = { 'engine.state.store': 'memory' }
    const first = await start(t, name, memory)
    await first.reaches('RUNNING')
    await feed(first, 0)
    const [changelog] = await first.broker.topics(['running-sum-seen-changelog'])
    const topicId = changelog?.topicId ?? ''
    await first.stop()
    const broker = join(folder, name, 'broker')
    const partition = join(broker, 'topics', topicId, '1')
    const segment = join(partition, readdirSync(partition).sort().at(-1) as string)
    truncateSync(segment, Math.floor(statSync(segment).size / 2))
    inspectFolder(broker).repair?.()
    const refused = await start(t, name, memory)
    await refused.reaches('FAILED')
    const { failure } = refused.runtime.view.state()
    assert.equal(failure?.code, 'CHANGELOG_LOST')
    assert.match(
      failure?.message ?? '',
      /store seen \(partition 1\) ends at offset \d+, and what was committed goes up to \d+/,
    )
    await refused.stop()
    const accepted = await start(t, name, { ...memory, 'engine.state.lost-changelogs': 'accept' })
    await accepted.reaches('RUNNING')
    await feed(accepted, 1)
    await accepted.stop()
    const again = await start(t, name, memory)
    await again.reaches('RUNNING')
    await feed(again, 2)
    assert.equal(again.state, 'RUNNING')
  })
})

describe('a row that nobody can read', () => {
  test('stops the engine with its place although input that fails is skipped', async (t) => {
    const skipping = { 'errors.decoding': 'skip', 'errors.processing': 'skip', 'errors.producing': 'skip' }
    const engine = await start(t, 'unreadable', { ...skipping, 'engine.state.store': 'memory' })
    await engine.reaches('RUNNING')
    await feed(engine, 0)
    await engine.stop()
    const other = await start(t, 'unreadable', { 'engine.state.dir': join(folder, 'unreadable', 'other') }, 'never')
    await other.put('running-sum-seen-changelog', [{ key: 'key-7', value: Buffer.from('{"torn') }])
    await other.stop()
    const again = await start(t, 'unreadable', { ...skipping, 'engine.state.store': 'memory' })
    await again.reaches('RUNNING')
    await again.put('numbers', [{ key: 'key-7', value: 1 }])
    await again.reaches('FAILED')
    const { failure } = again.runtime.view.state()
    assert.equal(failure?.code, 'CHANGELOG_UNREADABLE')
    assert.match(failure?.message ?? '', /store seen .*changelog running-sum-seen-changelog\/\d at offset \d+/)
    assert.equal(byKey(await again.read('seen'))['key-7']?.length, 1)
  })

  test('is no matter of the policies for input', () => {
    const policies = {
      decoding: 'skip',
      processing: 'skip',
      producing: 'skip',
      dropped: 'count',
      deadLetterTopic: '',
    } as const
    assert.equal(policyFor(new EngineError('CHANGELOG_UNREADABLE', ''), policies), 'fail')
  })
})
