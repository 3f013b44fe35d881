/**
 * A process without high availability must not run beside the pods of a hot standby of the same application: both would
 * process everything. Pods are seen by their heartbeats on the coordinator topic.
 */
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import { type AskAgain, readUpTo } from '../../broker/read-up-to.ts'
import { EngineError } from '../../base/errors.ts'
import type { EngineOptions } from '../engine-options.ts'
import { askAgain } from '../restore/ask-again.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'

/** Key of a heartbeat: `s/<pod>`. A pod that said goodbye has deleted its own. */
const heartbeatKey = /^s\/(.+)$/
/** Longer than pods are silent between two heartbeats, unless they were told to be. */
const watchMs = 3000
const maxBytes = 1024 * 1024

/**
 * Costs one question where the application never had pods, and a few seconds where some ended without a word.
 *
 * @throws EngineError `CONFIG_INVALID` where a pod is alive.
 */
export async function refuseBesidePods(options: EngineOptions, over: () => boolean): Promise<void> {
  const { broker, clock, settings } = options
  const { applicationId } = settings
  const topic = `${applicationId}-ha`
  const [info] = await broker.topics([topic])
  if (!info) return
  const pods = new Set<string>()
  let offset = await read(broker, topic, pods, askAgain(options, over))
  const until = clock.monotonic() + watchMs
  while (pods.size > 0 && clock.monotonic() < until) {
    const { next, beats, goodbyes } = await poll(broker, topic, offset, until - clock.monotonic())
    offset = next
    for (const pod of goodbyes) pods.delete(pod)
    const [alive] = beats
    if (alive === undefined) continue
    throw new EngineError(
      'CONFIG_INVALID',
      `ha.mode is off, but the pod ${alive} of a hot standby of ${applicationId} is running: stop its pods first, or set ha.mode to hot-standby`,
    )
  }
}

/** Everything there is; answers with its end. Leaves those that have not said goodbye. */
async function read(broker: BrokerPort, topic: string, pods: Set<string>, again: AskAgain): Promise<number> {
  const at = { topic, partition: 0 }
  const [start] = await broker.listOffsets([at], 'earliest')
  const [end] = await broker.listOffsets([at], 'stable')
  let offset = start?.offset ?? 0
  for await (const { answer, from } of readUpTo(
    broker,
    { ...at, from: offset, to: end?.offset ?? 0, maxBytes },
    again,
  )) {
    const { next, beats, goodbyes } = heard(answer, from)
    for (const pod of beats) pods.add(pod)
    for (const pod of goodbyes) pods.delete(pod)
    offset = next
  }
  return offset
}

interface Heard {
  readonly next: number
  readonly beats: Set<string>
  readonly goodbyes: Set<string>
}

async function poll(broker: BrokerPort, topic: string, offset: number, maxWaitMs: number): Promise<Heard> {
  const [fetched] = await broker.fetch({
    partitions: [{ topic, partition: 0, offset, maxBytes }],
    maxWaitMs: Math.max(1, Math.floor(maxWaitMs)),
    maxBytes,
    isolation: 'read_committed',
  })
  return heard(fetched, offset)
}

function heard(fetched: FetchedPartition | undefined, offset: number): Heard {
  const beats = new Set<string>()
  const goodbyes = new Set<string>()
  if (!fetched || fetched.records.length === 0) return { next: offset, beats, goodbyes }
  const cursor = new RecordCursor()
  cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
  while (cursor.next()) {
    if (cursor.keyStart < 0) continue
    const key = Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)).toString()
    const pod = heartbeatKey.exec(key)?.[1]
    if (pod === undefined) continue
    const gone = cursor.valueStart < 0
    ;(gone ? beats : goodbyes).delete(pod)
    ;(gone ? goodbyes : beats).add(pod)
  }
  return { next: Math.max(offset, cursor.position), beats, goodbyes }
}
