/**
 * The meter of the latency workload: feeds events at a fixed rate and measures how long each takes until a reader of
 * committed records holds a count that includes it. The k-th event of a page is seen once a count of at least k for that
 * page has come. `node bench/support/meter.ts --in T --out T [--rate N --warmup S --seconds S]`; prints one JSON line.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import { connectBroker } from '../../src/broker/connect.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder, RecordCursor } from '../../src/broker/wire/record-batch.ts'
import { processSeconds } from './usage.ts'

const text = { type: 'string' } as const
const { values } = parseArgs({
  options: {
    in: text,
    out: text,
    rate: { ...text, default: '5000' },
    warmup: { ...text, default: '20' },
    seconds: { ...text, default: '60' },
  },
})
const input = values.in ?? ''
const output = values.out ?? ''
const rate = Number(values.rate)
const skipped = rate * Number(values.warmup)
const total = skipped + rate * Number(values.seconds)
const pages = 2000
const partitions = 4
const giveUpMs = 60_000

interface Page {
  readonly sentAt: number[]
  readonly index: number[]
  seen: number
}

const byPage: Page[] = Array.from({ length: pages }, () => ({ sentAt: [], index: [], seen: 0 }))
const latencies: number[] = []
let sent = 0
let received = 0
let outputs = 0

/** Sends what is due, a batch a partition, every two milliseconds: what a producer does that lingers as long. */
async function feed(broker: BrokerPort): Promise<number> {
  const random = new Random(7)
  const builders = Array.from({ length: partitions }, () => new RecordBatchBuilder())
  const requests = new Set<Promise<unknown>>()
  const startedAt = performance.now()
  while (sent < total) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) * rate) / 1000) + 1)
    for (; sent < due; sent++) {
      const key = Buffer.from(`u${random.int(100_000)}`, 'latin1')
      const page = random.int(pages)
      const now = Date.now()
      const value = `{"user":"${key.toString('latin1')}","page":"p${page}","ms":${random.int(5000)},"ts":${now},"ok":true}`
      const { sentAt, index } = byPage[page] as Page
      sentAt.push(performance.now())
      index.push(sent)
      builders[keySlot(key) % partitions]?.append(now, key, Buffer.from(value, 'latin1'), [])
    }
    const batches = builders.flatMap((builder, partition) =>
      builder.count === 0 ? [] : [{ topic: input, partition, records: builder.finish() }],
    )
    const request: Promise<unknown> = broker
      .produce({ transactionalId: null, batches })
      .finally(() => requests.delete(request))
    requests.add(request)
    await sleep(2)
  }
  await Promise.all(requests)
  return (performance.now() - startedAt) / 1000
}

async function collect(broker: BrokerPort): Promise<void> {
  const offsets = new Array<number>(partitions).fill(0)
  const cursor = new RecordCursor({ verifyChecksums: false })
  const giveUpAt = performance.now() + (total / rate) * 1000 + giveUpMs
  while (received < total) {
    if (performance.now() > giveUpAt) throw new RangeError(`${received} of ${total} events were counted in the output`)
    const answers = await broker.fetch({
      partitions: offsets.map((offset, partition) => ({ topic: output, partition, offset, maxBytes: 1 << 20 })),
      maxWaitMs: 500,
      maxBytes: 16 << 20,
      isolation: 'read_committed',
    })
    const now = performance.now()
    for (const { partition, records, aborted, error } of answers) {
      if (error !== undefined) throw new RangeError(`${output}/${partition} cannot be read: ${error}`)
      cursor.reset(records, offsets[partition] as number, aborted, 'read_committed')
      while (cursor.next()) {
        const { bytes, keyStart, keyEnd, valueStart } = cursor
        const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        counted(Number(view.toString('latin1', keyStart + 1, keyEnd)), Number(view.readBigInt64BE(valueStart)), now)
      }
      offsets[partition] = cursor.position
    }
  }
}

function counted(number: number, count: number, now: number): void {
  outputs++
  const page = byPage[number] as Page
  for (; page.seen < count; page.seen++) {
    const sentAt = page.sentAt[page.seen]
    if (sentAt === undefined) throw new RangeError(`page p${number} was counted ${count} times, more than was sent`)
    if ((page.index[page.seen] as number) >= skipped) latencies.push(now - sentAt)
    received++
  }
}

const options = { bootstrapServers: [process.env.BOOTSTRAP ?? '127.0.0.1:9092'], clientId: 'millrace-meter' }
const feeder = await connectBroker({ kind: 'kafka', options })
const reader = await connectBroker({ kind: 'kafka', options })
const [seconds] = await Promise.all([feed(feeder), collect(reader)])
latencies.sort((a, b) => a - b)
const at = (q: number): number =>
  Number((latencies[Math.min(latencies.length - 1, Math.floor(q * latencies.length))] ?? Number.NaN).toFixed(1))
process.stdout.write(
  `${JSON.stringify({
    p50Ms: at(0.5),
    p90Ms: at(0.9),
    p99Ms: at(0.99),
    p999Ms: at(0.999),
    maxMs: at(1),
    sentPerSecond: Math.round(total / seconds),
    outputRecords: outputs,
    meterCpuSeconds: Number(processSeconds().toFixed(2)),
  })}\n`,
)
await feeder.close()
await reader.close()
