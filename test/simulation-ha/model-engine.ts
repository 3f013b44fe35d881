/**
 * A small but honest transactional engine: it counts its input per key, keeps the counts with a changelog, commits
 * outputs, changelog and offsets in one transaction under the application's transactional id, and follows the contract
 * with the coordinator. What the real engine does with lanes and stores, it does with a map.
 */
import type { Timers } from '../../src/base/timers.ts'
import { sleep } from '../../src/base/timers.ts'
import { BrokerError, type BrokerPort, type ProducerIdentity } from '../../src/broker/port.ts'
import { commitId, decodeTag, encodeTag } from '../../src/engine/commit/tag.ts'
import type { HaCommandToEngine, HaFact } from '../../src/engine/ha-contract.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { SimEngine } from './stage.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder, RecordCursor, stampBatch } from '../../src/broker/wire/record-batch.ts'

export const topics = { input: 'in', output: 'out', changelog: 'app-changelog', group: 'app', transactionalId: 'app' }

/** What a standby keeps, and a restart finds again. */
export interface Store {
  readonly counts: Map<string, number>
  position: number
}

export function emptyStore(): Store {
  return { counts: new Map(), position: 0 }
}

/** Mistakes that the checkers must notice. */
export interface EngineFlaws {
  /** A transactional id of its own: nobody is fenced. */
  readonly ownIdentity?: boolean
  readonly skipsDrain?: boolean
  readonly ignoresStable?: boolean
  readonly goesOnWhenIsolated?: boolean
  readonly ignoresStepDown?: boolean
  readonly appliesBeforeCommit?: boolean
  readonly handsOverEarly?: boolean
  readonly takesUnknownForCommitted?: boolean
  readonly readsUncommitted?: boolean
  readonly ignoresPause?: boolean
  readonly skipsProof?: boolean
}

export interface ModelOptions {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly store: Store
  readonly fact: (fact: EngineFact | HaFact) => void
  readonly flaws: EngineFlaws
  /** Names this life, for a flawed engine that has an identity of its own. */
  readonly life: string
}

const member = { groupId: topics.group, memberId: '', generationId: -1, groupInstanceId: null }
const maxBytes = 1 << 20

class Superseded extends Error {}

export class ModelEngine implements SimEngine {
  readonly #o: ModelOptions
  readonly #transactionalId: string
  /** Every command that ends what is under way raises it. */
  #turn = 0
  #identity: ProducerIdentity | undefined
  #sequences = new Map<string, number>()
  #tokenEpoch = 0
  #seq = 0
  #inputPosition = 0
  #isolated = false
  #active = false
  #handOver: number | undefined
  #tokenAsked = 0
  #tokenAnswer: ((held: boolean) => void) | undefined
  paused = false
  processed = 0
  #restartMs = 0

  constructor(options: ModelOptions) {
    this.#o = options
    this.#transactionalId = options.flaws.ownIdentity ? `app-${options.life}` : topics.transactionalId
  }

  start(): void {
    this.#follow()
  }

  command(command: HaCommandToEngine): void {
    switch (command.type) {
      case 'ha-promote':
        this.#turn++
        this.#handOver = undefined
        this.paused = command.paused && !this.#o.flaws.ignoresPause
        this.#tokenEpoch = command.tokenEpoch
        void this.#guarded(() => this.#takeIdentity())
        break
      case 'ha-proceed':
        void this.#guarded(() => this.#proceed())
        break
      case 'ha-hand-over':
        this.#handOver = command.id
        if (this.#o.flaws.handsOverEarly) this.#handedOver()
        break
      case 'ha-step-down':
        this.#tokenAnswer = undefined
        this.#handOver = undefined
        if (!this.#o.flaws.ignoresStepDown) this.#follow()
        else this.#o.fact({ type: 'standby' })
        break
      case 'ha-isolate':
        this.#isolated = command.isolated && !this.#o.flaws.goesOnWhenIsolated
        break
      case 'ha-token':
        if (command.id !== this.#tokenAsked) break
        this.#tokenAnswer?.(command.held)
        this.#tokenAnswer = undefined
        break
      default:
        this.#turn++
        this.#o.fact({ type: 'failed', error: wireError, restartHelps: true })
    }
  }

  setPaused(paused: boolean): void {
    this.paused = paused
  }

  /** As a lane that fails: everything not committed is void, and the engine starts over in place. */
  disturb(ms: number): void {
    this.#restartMs = ms
    if (this.#active) void this.#guarded(() => this.#restart())
  }

  exhaust(offset: number): void {
    if (!this.#active) return
    this.#turn++
    this.#active = false
    const place = { topic: topics.input, partition: 0, offset }
    this.#o.fact({ type: 'fault-seen', place })
    this.#o.fact({ type: 'restarts-exhausted', error: wireError, place })
  }

  #follow(): void {
    this.#turn++
    this.#active = false
    this.#handOver = undefined
    const turn = this.#turn
    this.#o.fact({ type: 'standby' })
    void this.#guarded(async () => {
      for (;;) {
        const lag = await this.#patiently(turn, () => this.#readChangelog(50))
        this.#check(turn)
        const progress = { open: true, lagRecords: lag, lagMs: lag === 0 ? 0 : 1000, freshnessMs: 0 }
        this.#o.fact({ type: 'standby-progress', progress })
        await sleep(this.#o.timers, 20)
        this.#check(turn)
      }
    })
  }

  async #takeIdentity(): Promise<void> {
    const turn = this.#turn
    this.#seq = 0
    await this.#initProducer(turn, undefined)
    this.#o.fact({ type: 'identity-taken', tokenEpoch: this.#tokenEpoch })
  }

  async #proceed(): Promise<void> {
    const turn = this.#turn
    await this.#restore(turn)
    if (this.#o.flaws.skipsProof) this.#seq = 1
    else await this.#commit(turn, [], new Map())
    this.#o.fact({ type: 'running' })
    await this.#process(turn)
  }

  async #process(turn: number): Promise<void> {
    this.#active = true
    for (;;) {
      this.#check(turn)
      if (this.#handOver !== undefined) {
        this.#handedOver()
        return
      }
      if (this.#isolated || this.paused) {
        await sleep(this.#o.timers, 10)
        continue
      }
      const records = await this.#readInput()
      this.#check(turn)
      // Isolation and pause hold between reading and committing too.
      if (records.length === 0 || this.#isolated || this.paused) continue
      const overlay = new Map<string, number>()
      const outputs: string[][] = []
      for (const { key } of records) {
        const count = (overlay.get(key) ?? this.#o.store.counts.get(key) ?? 0) + 1
        overlay.set(key, count)
        outputs.push([key, String(count)])
      }
      if (this.#o.flaws.appliesBeforeCommit) for (const [key, count] of overlay) this.#o.store.counts.set(key, count)
      this.#inputPosition = (records.at(-1)?.offset ?? -1) + 1
      await this.#commit(turn, outputs, overlay)
      this.processed += records.length
      await sleep(this.#o.timers, 10)
    }
  }

  #handedOver(): void {
    const id = this.#handOver as number
    const last = commitId({ tokenEpoch: this.#tokenEpoch, seq: this.#seq })
    if (this.#o.flaws.handsOverEarly) {
      this.#handOver = undefined
      this.#o.fact({ type: 'handed-over', id, commitId: last, changelogEnds: {} })
      this.#o.fact({ type: 'standby' })
      return
    }
    this.#o.fact({ type: 'handed-over', id, commitId: last, changelogEnds: {} })
    this.#follow()
  }

  async #commit(turn: number, outputs: readonly string[][], overlay: ReadonlyMap<string, number>): Promise<void> {
    const identity = this.#identity as ProducerIdentity
    const { broker, store } = this.#o
    let changelogEnd = -1
    if (outputs.length > 0) {
      await this.#produce(turn, identity, topics.output, outputs)
      const rows = [...overlay].map(([key, count]) => [key, String(count)])
      changelogEnd = (await this.#produce(turn, identity, topics.changelog, rows)) + rows.length
    }
    const tag = { tokenEpoch: this.#tokenEpoch, seq: this.#seq + 1, maxTimestamp: 0, watermark: 0 }
    const offset = { topic: topics.input, partition: 0, offset: this.#inputPosition, metadata: encodeTag(tag) }
    await broker.commitOffsetsInTransaction(this.#transactionalId, identity, member, [offset])
    this.#check(turn)
    try {
      this.#identity = await broker.endTransaction(this.#transactionalId, identity, true)
    } catch (error) {
      if (!this.#o.flaws.takesUnknownForCommitted) throw error
    }
    if (this.#identity !== identity) this.#sequences.clear()
    this.#check(turn)
    this.#seq = tag.seq
    for (const [key, count] of overlay) store.counts.set(key, count)
    if (changelogEnd > store.position) store.position = changelogEnd
    this.#o.fact({ type: 'committed', commitId: commitId(tag) })
  }

  async #produce(
    turn: number,
    identity: ProducerIdentity,
    topic: string,
    rows: readonly (readonly string[])[],
  ): Promise<number> {
    const builder = new RecordBatchBuilder()
    for (const [key, value] of rows) builder.append(0, Buffer.from(key ?? ''), Buffer.from(value ?? ''), noHeaders)
    const records = builder.finish()
    const baseSequence = this.#sequences.get(topic) ?? 0
    this.#sequences.set(topic, baseSequence + rows.length)
    stampBatch(records, { ...identity, baseSequence, transactional: true })
    const [produced] = await this.#o.broker.produce({
      transactionalId: this.#transactionalId,
      batches: [{ topic, partition: 0, records }],
    })
    this.#check(turn)
    return produced?.baseOffset ?? -1
  }

  /** In place: the token is asked for first, then the identity is taken again, and everything read anew. */
  async #restart(): Promise<void> {
    const turn = ++this.#turn
    this.#o.fact({ type: 'restarting', cause: 'disturbed' })
    await sleep(this.#o.timers, 5 + this.#restartMs)
    this.#restartMs = 0
    this.#check(turn)
    const id = ++this.#tokenAsked
    const held = await new Promise<boolean>((resolve) => {
      this.#tokenAnswer = resolve
      this.#o.fact({ type: 'verify-token', id })
    })
    this.#check(turn)
    if (!held) return
    await this.#initProducer(turn, undefined)
    await this.#restore(turn)
    this.#o.fact({ type: 'running' })
    await this.#process(turn)
  }

  async #initProducer(turn: number, current: ProducerIdentity | undefined): Promise<void> {
    this.#identity = await this.#patiently(turn, () =>
      this.#o.broker.initProducer(this.#transactionalId, 5000, current),
    )
    this.#sequences = new Map()
  }

  /** Nothing is processed before the changelog is read to its end and the offsets are known. */
  async #restore(turn: number): Promise<void> {
    if (!this.#o.flaws.skipsDrain) {
      const [end] = await this.#patiently(turn, () =>
        this.#o.broker.listOffsets([{ topic: topics.changelog, partition: 0 }], 'stable'),
      )
      while (this.#o.store.position < (end?.offset ?? 0)) {
        await this.#patiently(turn, () => this.#readChangelog(0))
      }
    }
    const [committed] = await this.#patiently(turn, () =>
      this.#o.broker.committedOffsets(
        topics.group,
        [{ topic: topics.input, partition: 0 }],
        !this.#o.flaws.ignoresStable,
      ),
    )
    this.#inputPosition = Math.max(0, committed?.offset ?? 0)
    const tag = decodeTag(committed?.metadata ?? '')
    this.#seq = tag?.tokenEpoch === this.#tokenEpoch ? tag.seq : 0
  }

  /** Answers with the lag that is left. */
  async #readChangelog(maxWaitMs: number): Promise<number> {
    const { broker, store, flaws } = this.#o
    const isolation = flaws.readsUncommitted ? 'read_uncommitted' : 'read_committed'
    const from = store.position
    const [fetched] = await broker.fetch({
      partitions: [{ topic: topics.changelog, partition: 0, offset: from, maxBytes }],
      maxWaitMs,
      maxBytes,
      isolation,
    })
    if (fetched === undefined || store.position !== from) return 1
    const cursor = new RecordCursor()
    cursor.reset(fetched.records, from, fetched.aborted, isolation)
    while (cursor.next()) {
      const [key, value] = textsOf(cursor)
      store.counts.set(key, Number(value))
    }
    store.position = cursor.position
    return Math.max(0, fetched.lastStableOffset - store.position)
  }

  async #readInput(): Promise<Array<{ key: string; offset: number }>> {
    const [fetched] = await this.#o.broker.fetch({
      partitions: [{ topic: topics.input, partition: 0, offset: this.#inputPosition, maxBytes }],
      maxWaitMs: 100,
      maxBytes,
      isolation: 'read_committed',
    })
    const records: Array<{ key: string; offset: number }> = []
    if (fetched === undefined) return records
    const cursor = new RecordCursor()
    cursor.reset(fetched.records, this.#inputPosition, fetched.aborted, 'read_committed')
    while (records.length < 4 && cursor.next()) records.push({ key: textsOf(cursor)[0], offset: cursor.offset })
    return records
  }

  /** What fails is answered by a restart in place; a broker that cannot be reached costs nothing but time. */
  async #guarded(run: () => Promise<void>): Promise<void> {
    const running = run()
    const turn = this.#turn
    try {
      await running
    } catch (error) {
      if (error instanceof Superseded) return
      if (!(error instanceof BrokerError)) throw error
      // What fails of a turn that is over is nobody's business any more.
      if (turn === this.#turn) await sleep(this.#o.timers, 20)
      if (turn === this.#turn) await this.#guarded(() => this.#restart())
    }
  }

  async #patiently<T>(turn: number, call: () => Promise<T>): Promise<T> {
    for (;;) {
      this.#check(turn)
      try {
        const result = await call()
        this.#check(turn)
        return result
      } catch (error) {
        if (!(error instanceof BrokerError) || !['unreachable', 'retriable'].includes(error.errorClass)) throw error
        await sleep(this.#o.timers, 30)
      }
    }
  }

  #check(turn: number): void {
    if (turn !== this.#turn) throw new Superseded()
  }
}

const wireError = { code: 'RESTARTS_EXHAUSTED', message: 'told to fail', stack: undefined, details: {} } as const

function textsOf(cursor: RecordCursor): [string, string] {
  const { bytes, keyStart, keyEnd, valueStart, valueEnd } = cursor
  return [
    Buffer.from(bytes.subarray(keyStart, keyEnd)).toString(),
    Buffer.from(bytes.subarray(valueStart, valueEnd)).toString(),
  ]
}
