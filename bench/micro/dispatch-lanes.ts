/**
 * What dispatch alone costs the engine thread, by lanes and partitions: nanoseconds a record from the buffers of the partitions to packed
 * buffers for the lanes, without messages. The least of many short rounds is shown, which holds on a busy machine too.
 * `node bench/micro/dispatch-lanes.ts [ROUNDS]`
 */
import {
  type CounterLayout,
  engineBlockLength,
  finishedSlot,
  laneBlockLength,
  laneIndex,
  newBlock,
  sourceTopicSlot,
} from '../../src/base/counters.ts'
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import { usualSizes } from '../../src/base/sizes.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { Admission } from '../../src/engine/input/admission/admission.ts'
import { Dispatcher } from '../../src/engine/input/dispatcher.ts'
import { PartitionBuffer } from '../../src/engine/input/partition-buffer.ts'
import { Runs } from '../../src/engine/run.ts'
import type { ToLane } from '../../src/lanes/protocol.ts'
import { Watermarks } from '../../src/time/watermarks.ts'
import { Affinity } from '../../src/topology/affinity.ts'

const records = 6000
const rounds = Number(process.argv[2] ?? 500)
const warmup = 100
const layout: CounterLayout = { nodes: 1, subtopologies: 1, stores: [], sourceTopics: ['ev'], sinkTopics: [] }
const topic = 'ev'
const firstTimestamp = 1_760_000_000_000

/** One batch a partition. */
function input(partitions: number): Uint8Array[] {
  const random = new Random(7)
  const builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
  for (let i = 0; i < records; i++) {
    const user = `u${random.int(100_000)}`
    const key = Buffer.from(user)
    const value = `{"user":"${user}","page":"p${random.int(2000)}","ms":123,"ts":${firstTimestamp + i},"ok":true}`
    builders[keySlot(key) % partitions]?.append(firstTimestamp + i, key, Buffer.from(value), [])
  }
  return builders.map((builder) => builder.finish())
}

const nothing = (): void => undefined

class Round {
  #done = 0
  readonly #dispatcher: Dispatcher
  readonly #watermarks = new Watermarks()
  readonly #admission: Admission
  readonly #laneCounters: Float64Array[]

  constructor(lanes: number, batches: readonly Uint8Array[]) {
    const partitions = batches.length
    this.#laneCounters = Array.from({ length: lanes }, () => newBlock(laneBlockLength(layout)))
    const options = { laneCounters: this.#laneCounters, layout, commitIntervalMs: 100, levels: false }
    this.#admission = new Admission(options, 0)
    const affinity = new Affinity({
      lanes,
      split: 'in-process',
      tasks: [Math.max(partitions, lanes)],
      stateful: [true],
    })
    const { dispatchBytes } = usualSizes
    const host = {
      run: new Runs().next(),
      dispatchBytes,
      send: (lane: number, message: ToLane) => this.#send(lane, message),
      failed: nothing,
    }
    this.#dispatcher = new Dispatcher(
      this.#watermarks,
      affinity,
      this.#admission,
      host,
      1 << 22,
      newBlock(engineBlockLength(layout)),
      false,
    )
    for (const [partition, batch] of batches.entries()) this.#assign(partition, batch)
  }

  #assign(partition: number, batch: Uint8Array): void {
    const events = { arrived: nothing, polled: nothing, hungry: nothing, failed: nothing }
    const bounds = { capacity: records, maxPollRecords: records }
    const buffer = new PartitionBuffer({ topic, partition, offset: 0, ...bounds, isolation: 'read_committed' }, events)
    const timing = { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined }
    const task = `t${partition}`
    const handle = this.#watermarks.assign({ topic, partition }, timing, { task, lag: 0, at: 0 })
    const counter = sourceTopicSlot(layout, 0)
    const numbers = { source: 0, subtopology: 0, carriesValue: true, isChangelog: false, originTopic: 0, counter }
    this.#dispatcher.assign({ handle, topic, partition, task, ...numbers, buffer, sorted: undefined })
    buffer.append(batch, [])
    this.#watermarks.headArrived(handle, buffer.headTimestamp, buffer.headOffset, 0)
  }

  /** The lane is done with it at once, and says so where the engine looks. */
  #send(lane: number, message: ToLane): void {
    if (message.type !== 'data') return
    this.#done += message.records
    this.#dispatcher.consumed(lane, message.length)
    const block = this.#laneCounters[lane] as Float64Array
    block[laneIndex.finishedRecords]! += message.records
    block[finishedSlot(layout, 0)]! += message.records
    block[laneIndex.occupiedMs]! += message.records / 1000
  }

  /** Nanoseconds a record. */
  run(): number {
    const began = performance.now()
    for (let now = 1; this.#done < records; now++) {
      this.#admission.look(now)
      this.#dispatcher.dispatch(2048, now)
    }
    return ((performance.now() - began) * 1e6) / records
  }
}

for (const partitions of [4, 16, 64]) {
  const batches = input(partitions)
  for (const lanes of [1, 2, 4, 8, 16]) {
    let least = Number.POSITIVE_INFINITY
    for (let round = 0; round < rounds + warmup; round++) {
      const took = new Round(lanes, batches).run()
      if (round >= warmup) least = Math.min(least, took)
    }
    const label = `${String(partitions).padStart(3)} partitions, ${String(lanes).padStart(2)} lanes`
    process.stdout.write(`${label}  ${least.toFixed(0).padStart(4)} ns a record\n`)
  }
}
