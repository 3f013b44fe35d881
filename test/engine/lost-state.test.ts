/** Changelogs that are not what the stores left there: deleted, cut, of another form, or with rows that nobody can read. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { decodeMarks, encodeMarks } from '../../src/engine/commit/state-marks.ts'
import { decodeTag } from '../../src/engine/commit/tag.ts'
import type { ErrorPolicies } from '../../src/lanes/tasks/error-policy.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes, tumbling } from '../../src/index.ts'
import type { Tamper } from '../simulation/faulty-broker.ts'
import { lastByKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

type Shape = 'count' | 'sum' | 'windows' | 'other name' | 'generated' | 'generated later' | 'none'

/** The same input into a store whose rows have one form or another. */
const application = (shape: Shape) =>
  defineApp({
    applicationId: 'sim',
    build(topology) {
      const source = topology.stream('in', { key: serdes.string, value: serdes.json<number>() })
      if (shape === 'none') {
        source.to('out')
        return
      }
      const grouped = (shape === 'generated later' ? source.mapValues((value) => value) : source).groupByKey()
      if (shape === 'windows') {
        grouped.windowedBy(tumbling('1m')).count({ store: 'kept' }).toStream().to('windows')
      } else if (shape === 'sum') {
        const adder = (sum: { sum: number }, value: number) => ({ sum: sum.sum + value })
        grouped
          .aggregate(() => ({ sum: 0 }), adder, { store: 'kept' })
          .toStream()
          .to('out')
      } else {
        const name = shape === 'other name' ? 'other' : 'kept'
        const counts = shape.startsWith('generated') ? grouped.count() : grouped.count({ store: name })
        counts.toStream().to('out')
      }
    },
  })

class Rig extends VirtualEngine {
  readonly #state: { shape: Shape }

  constructor(settings: Partial<EngineSettings> = {}, tamper?: Tamper, policies: Partial<ErrorPolicies> = {}) {
    const state: { shape: Shape } = { shape: 'count' }
    super({
      compile: () => application(state.shape).compile(),
      settings: { durableStores: false, ...settings },
      policies,
      ...(tamper && { tamper }),
    })
    this.#state = state
  }

  set shape(shape: Shape) {
    this.#state.shape = shape
  }

  /** A run that commits some rows and ends. */
  async ran(from = 0): Promise<void> {
    await this.start()
    await this.runs()
    await this.feed(from)
    this.kill()
  }

  async feed(from: number): Promise<void> {
    const records = Array.from({ length: 20 }, (_, i) => ({
      key: `key-${i % 5}`,
      value: i,
      timestamp: 1_000_000 + from + i,
    }))
    await this.put('in', records)
    await this.settled()
  }

  async fails(): Promise<{ code: string; message: string }> {
    await this.start()
    await this.until('it has failed', () => this.count('failed') > 0)
    return this.failure
  }

  get failure(): { code: string; message: string } {
    const failed = this.facts.find((fact) => fact.type === 'failed')
    assert.ok(failed)
    return failed.error
  }

  /** A row that the store did not write. */
  async writeRow(topic: string, key: string, value: Uint8Array | null): Promise<number> {
    const counts = await this.broker.topics([topic])
    let partition = 0
    for (let each = 0; each < (counts[0]?.partitions ?? 0); each++) {
      const [part] = await this.broker.fetch({
        partitions: [{ topic, partition: each, offset: 0, maxBytes: 1 << 20 }],
        maxWaitMs: 1,
        maxBytes: 1 << 20,
        isolation: 'read_committed',
      })
      if (part && Buffer.from(part.records).includes(key)) partition = each
    }
    const builder = new RecordBatchBuilder()
    builder.append(1_000_500, Buffer.from(key), value, [])
    await this.broker.produce({ transactionalId: null, batches: [{ topic, partition, records: builder.finish() }] })
    const [end] = await this.broker.listOffsets([{ topic, partition }], 'stable')
    return (end?.offset ?? 0) - 1
  }
}

const changelog = 'sim-kept-changelog'
const counts = (n: number) => Object.fromEntries([0, 1, 2, 3, 4].map((i) => [`key-${i}`, n]))

describe('a changelog that was deleted behind the commits', () => {
  test('is refused, by every start, until somebody decides', async () => {
    const rig = new Rig()
    await rig.ran()
    await rig.broker.deleteTopics([changelog])
    for (let start = 0; start < 2; start++) {
      const { code, message } = await rig.fails()
      assert.equal(code, 'CHANGELOG_LOST')
      assert.match(message, /changelog sim-kept-changelog of the store kept is not the topic/)
      assert.match(message, /Ways out: .*begin anew.*engine\.state\.lost-changelogs: accept/)
      assert.equal(rig.count('running'), 0)
    }
  })

  test('is taken as it is where that is asked for, and then is the one that the commits know', async () => {
    const rig = new Rig({ lostChangelogs: 'accept' })
    await rig.ran()
    await rig.broker.deleteTopics([changelog])
    await rig.ran(1000)
    assert.deepEqual(lastByKey(await rig.read('out')), counts(4))
    await rig.ran(2000)
    assert.deepEqual(lastByKey(await rig.read('out')), counts(8))
  })

  test('that has lost its beginning is refused as well', async () => {
    let isCut = false
    const rig = new Rig({}, async (name, args, call) => {
      const answer = await call(args)
      if (name !== 'listOffsets' || !isCut || args[1] !== 'earliest') return answer
      return (answer as Array<{ topic: string; offset: number }>).map((each) =>
        each.topic === changelog ? { ...each, offset: 3 } : each,
      )
    })
    await rig.ran()
    isCut = true
    const { code, message } = await rig.fails()
    assert.equal(code, 'CHANGELOG_LOST')
    assert.match(message, /the store kept \(partition \d\) begins at offset 3/)
  })

  test('does no harm where no commit remembers it: state of a version before starts', async () => {
    const rig = new Rig({}, async (name, args, call) => {
      const answer = await call(args)
      if (name !== 'committedOffsets') return answer
      return (answer as Array<{ metadata: string }>).map((each) => ({
        ...each,
        metadata: each.metadata.replace(/\|stores=.*/, ''),
      }))
    })
    await rig.ran()
    await rig.ran(1000)
    assert.deepEqual(lastByKey(await rig.read('out')), counts(8))
  })
})

describe('a changelog that ends before what was committed', () => {
  /** Answers that the changelog ends earlier, as far as `hides` says. */
  const shortened =
    (hides: (at: unknown) => number): Tamper =>
    async (name, args, call) => {
      const answer = await call(args)
      if (name !== 'listOffsets') return answer
      return (answer as Array<{ topic: string; offset: number }>).map((each) =>
        each.topic === changelog && each.offset > 0 ? { ...each, offset: each.offset - hides(args[1]) } : each,
      )
    }

  for (const shape of ['count', 'windows'] as const) {
    test(`is refused without a store on disk (${shape})`, async () => {
      let hidden = 0
      const rig = new Rig(
        {},
        shortened((at) => (at === 'earliest' ? 0 : hidden)),
      )
      rig.shape = shape
      await rig.ran()
      // The marker behind the records is nothing that a store could lack.
      hidden = 2
      const { code, message } = await rig.fails()
      assert.equal(code, 'CHANGELOG_LOST')
      assert.match(message, /the store kept \(partition \d\) ends at offset \d+, and what was committed goes up to \d+/)
      hidden = 0
      await rig.ran(1000)
      if (shape === 'count') assert.deepEqual(lastByKey(await rig.read('out')), counts(8))
    })
  }

  test('is waited for where the broker has it and is only about to show it', async () => {
    let asked = Number.POSITIVE_INFINITY
    const rig = new Rig(
      {},
      shortened((at) => (at === 'stable' && asked++ < 5 ? 2 : 0)),
    )
    await rig.ran()
    asked = 0
    await rig.ran(1000)
    assert.ok(asked > 5)
    assert.equal(rig.count('failed'), 0)
    assert.deepEqual(lastByKey(await rig.read('out')), counts(8))
  })
})

describe('a changelog that loses its end while it is written to', () => {
  test('stops the engine before that is committed, and is refused by the next start', async () => {
    let lost = 0
    const rig = new Rig({ durableStores: true }, async (name, args, call) => {
      const answer = await call(args)
      if (name === 'listOffsets' && args[1] !== 'earliest')
        return (answer as Array<{ topic: string; offset: number }>).map((each) =>
          each.topic === changelog ? { ...each, offset: Math.max(0, each.offset - lost) } : each,
        )
      if (name !== 'produce') return answer
      return (answer as Array<{ topic: string; baseOffset: number }>).map((each) =>
        each.topic === changelog ? { ...each, baseOffset: each.baseOffset - lost } : each,
      )
    })
    await rig.start()
    await rig.runs()
    await rig.feed(0)
    lost = 4
    await rig.put('in', [{ key: 'key-1', value: 1, timestamp: 1_001_000 }])
    await rig.until('it has failed', () => rig.count('failed') > 0)
    const { code, message } = rig.failure
    assert.equal(code, 'CHANGELOG_LOST')
    assert.match(
      message,
      /the store kept \(partition \d\) was committed up to \d+, and the broker writes to it at offset \d+ now/,
    )
    assert.match(message, /with the topic deleted, `engine\.state\.lost-changelogs: write-anew`/)
    assert.deepEqual(lastByKey(await rig.read('out')), counts(4))
    assert.equal((await rig.fails()).code, 'CHANGELOG_LOST')
  })
})

describe('a store whose form has changed under the same name', () => {
  for (const shape of ['windows', 'sum'] as const) {
    test(`is refused (${shape}), and the application as it was goes on`, async () => {
      const rig = new Rig()
      await rig.ran()
      rig.shape = shape
      const { code, message } = await rig.fails()
      assert.equal(code, 'STATE_CHANGED')
      assert.match(
        message,
        shape === 'windows'
          ? /the kind of the store kept changes/
          : /the values of the store kept change from number to object/,
      )
      assert.match(message, /give it a new name/)
      rig.shape = 'count'
      await rig.ran(1000)
      assert.deepEqual(lastByKey(await rig.read('out')), counts(8))
    })
  }

  test('is refused, too, where the store was left out in between', async () => {
    const rig = new Rig()
    await rig.ran()
    rig.shape = 'other name'
    await rig.ran(1000)
    rig.shape = 'windows'
    assert.equal((await rig.fails()).code, 'STATE_CHANGED')
  })

  test('is told of a name made of its position, and refused; a name of its own may be changed', async () => {
    const rig = new Rig()
    rig.shape = 'generated'
    await rig.ran()
    rig.shape = 'generated later'
    const { code, message } = await rig.fails()
    assert.equal(code, 'STATE_CHANGED')
    assert.match(message, /its name is generated and goes by its position/)
    const named = new Rig()
    await named.ran()
    named.shape = 'other name'
    await named.ran(1000)
    assert.deepEqual(lastByKey(await named.read('out')), counts(4))
  })
})

describe('a row of a changelog that nobody can read', () => {
  const policies = { decoding: 'skip', processing: 'skip', producing: 'skip' } as const
  test('stops the engine with its place, whatever the policies for input, and a tombstone for it is a way out', async () => {
    const rig = new Rig({}, undefined, policies)
    await rig.ran()
    const offset = await rig.writeRow(changelog, 'key-3', Buffer.from('no number'))
    await rig.start()
    await rig.runs()
    await rig.put('in', [{ key: 'key-3', value: 1, timestamp: 1_003_000 }])
    await rig.until('it has failed', () => rig.count('failed') > 0)
    const { code, message } = rig.failure
    assert.equal(code, 'CHANGELOG_UNREADABLE')
    assert.match(message, /The value of a row of the store kept \(partition \d\) cannot be decoded with the serde json/)
    assert.ok(message.includes(`changelog ${changelog}/`) && message.includes(`at offset ${offset}`), message)
    rig.kill()
    await rig.writeRow(changelog, 'key-3', null)
    await rig.ran(4000)
    assert.deepEqual(lastByKey(await rig.read('out')), { ...counts(8), 'key-3': 5 })
  })
})

describe('what a commit remembers of the stores', () => {
  test('stands in one partition of each commit, and is read back as it was', async () => {
    const rig = new Rig()
    await rig.ran()
    const asked = [0, 1].map((partition) => ({ topic: 'in', partition }))
    const tags = (await rig.broker.committedOffsets('sim', asked, true)).map(({ metadata }) => decodeTag(metadata))
    const stores = tags.flatMap((tag) => tag?.stores ?? [])
    assert.equal(stores.length, 1)
    const marks = decodeMarks(stores[0] as string)
    assert.deepEqual(
      marks.map(({ name, kind, timestamped }) => ({ name, kind, timestamped })),
      [{ name: 'kept', kind: 'key-value', timestamped: true }],
    )
    assert.deepEqual(decodeMarks(encodeMarks(marks)), marks)
  })

  test('takes no more than a broker takes, whatever the names', () => {
    const marks = Array.from({ length: 300 }, (_, i) => ({
      name: `größe, ${i}; |`,
      kind: 'window',
      keySerde: 'a',
      valueSerde: 'b',
      timestamped: false,
      windowSizeMs: 60_000,
      changelog: 'x',
    }))
    const text = encodeMarks(marks)
    assert.ok(text.length <= 3600 && !/[^\x20-\x7e]/.test(text) && !text.includes('|'))
    const read = decodeMarks(text)
    assert.ok(read.length > 20)
    assert.deepEqual(new Set(read.map(({ kind }) => kind)), new Set(['window']))
  })
})
