/**
 * `npm run demo:ha`: three pods of one application in this process, over one embedded broker, under a live feed. One is
 * active, two follow. The role is moved by a switch, then its holder is lost without a word; at the end every reading
 * has been counted once. Takes less than a minute and leaves nothing behind. With a number, as in
 * `npm run demo:ha -- 600`, it runs for so many seconds between one step and the next.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type EmbeddedBroker, type Runtime, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { RecordBatchBuilder, RecordCursor } from '../../src/broker/wire/record-batch.ts'

const partitions = 2
const sensors = 20
const perSecond = 200
const patienceMs = 60_000
const betweenMs = Number(process.argv[2] ?? 2) * 1000
const startedAt = performance.now()

function say(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)
  process.stdout.write(`${seconds} s  ${text}\n`)
}

interface Pod {
  readonly id: string
  readonly runtime: Runtime
}

const isActive = ({ runtime }: Pod): boolean =>
  runtime.ha?.status()?.selfState === 'ACTIVE' && runtime.view.state().current === 'RUNNING'
const isReady = ({ runtime }: Pod): boolean => runtime.ha?.status()?.selfState === 'READY_STANDBY'

async function until<T>(what: string, look: () => T | undefined): Promise<T> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    const found = look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs / 1000} s in vain until ${what}`)
    await sleep(10)
  }
}

class Demo {
  readonly #broker: EmbeddedBroker
  readonly #client: ReturnType<EmbeddedBroker['client']>
  #pods: Pod[] = []
  #sent = 0
  #feeding = true

  constructor(broker: EmbeddedBroker) {
    this.#broker = broker
    this.#client = broker.client()
  }

  async run(): Promise<boolean> {
    for (const id of ['pod-a', 'pod-b', 'pod-c']) this.#pods.push(await this.#start(id))
    await this.#settled()
    const feed = this.#feed()
    await sleep(betweenMs)
    this.#show()

    const first = this.#active()
    say(`switch: POST /ha/switch on ${first.id}`)
    const switchedAt = performance.now()
    await fetch(`${first.runtime.url}/ha/switch`, { method: 'POST' })
    const second = await until('another pod is active', () => this.#pods.find((pod) => pod !== first && isActive(pod)))
    say(`${second.id} took over after ${Math.round(performance.now() - switchedAt)} ms`)
    await this.#settled()
    this.#show()

    await sleep(betweenMs)
    const lost = this.#active()
    say(`loss: ${lost.id} ends without a word, as by kill -9`)
    const lostAt = performance.now()
    this.#pods = this.#pods.filter((pod) => pod !== lost)
    await lost.runtime.kill()
    const third = await until('another pod is active', () => this.#pods.find(isActive))
    say(
      `${third.id} took over after ${Math.round(performance.now() - lostAt)} ms; patience is 2,000 ms from the last sign of life on`,
    )
    await sleep(betweenMs)
    this.#show()

    this.#feeding = false
    await feed
    return this.#account()
  }

  async close(): Promise<void> {
    this.#feeding = false
    await Promise.all(this.#pods.map(({ runtime }) => runtime.stop()))
    await this.#client.close()
    await this.#broker.close()
  }

  async #start(id: string): Promise<Pod> {
    const runtime = await startRuntime({
      application: new URL('./app.ts', import.meta.url),
      broker: this.#broker,
      environment: {},
      config: {
        'ha.mode': 'hot-standby',
        'ha.pod-id': id,
        'ha.desired-standbys': 2,
        'ha.heartbeat-interval': 200,
        'ha.failover-timeout': 2000,
        'engine.lanes.count': 2,
        'broker.embedded.partitions': partitions,
        'runtime.http.host': '127.0.0.1',
        'runtime.http.port': 0,
      },
      log: ({ level, component, message }) => {
        if (component === 'ha' || level === 'error') say(`${id}: ${message}`)
      },
    })
    say(`${id}: ${runtime.url}`)
    return { id, runtime }
  }

  /** One pod is active, the others are ready to take over. */
  async #settled(): Promise<void> {
    await until('one pod is active and the others are ready', () => {
      const active = this.#pods.filter(isActive)
      return active.length === 1 && this.#pods.every((pod) => pod === active[0] || isReady(pod)) ? true : undefined
    })
  }

  #active(): Pod {
    const active = this.#pods.find(isActive)
    if (!active) throw new Error('no pod is active')
    return active
  }

  #show(): void {
    for (const { id, runtime } of this.#pods) {
      const status = runtime.ha?.status()
      const state = runtime.view.state().current
      say(
        `   ${id}  ${status?.selfState}  engine ${state}  token epoch ${status?.tokenEpoch}  ${this.#sent} readings fed`,
      )
    }
  }

  async #feed(): Promise<void> {
    while (this.#feeding) {
      const batches = new Map<number, RecordBatchBuilder>()
      for (let n = 0; n < perSecond / 10; n++, this.#sent++) {
        const sensor = this.#sent % sensors
        const builder = batches.get(sensor % partitions) ?? new RecordBatchBuilder()
        batches.set(sensor % partitions, builder)
        builder.append(Date.now(), Buffer.from(`sensor-${sensor}`), Buffer.from(String(this.#sent)), [])
      }
      const toSend = [...batches].map(([partition, builder]) => ({
        topic: 'readings',
        partition,
        records: builder.finish(),
      }))
      await this.#client.produce({ transactionalId: null, batches: toSend })
      await sleep(100)
    }
  }

  /** Every reading has come out as one result, and the last result of each sensor holds them all. */
  async #account(): Promise<boolean> {
    const deadline = performance.now() + patienceMs
    let results = 0
    let last = new Map<string, { readings: number; sum: number }>()
    while (results < this.#sent && performance.now() < deadline) {
      ;({ results, last } = await this.#results())
      await sleep(50)
    }
    const counted = [...last.values()].reduce((sum, { readings }) => sum + readings, 0)
    const added = [...last.values()].reduce((sum, total) => sum + total.sum, 0)
    const expected = (this.#sent * (this.#sent - 1)) / 2
    say(`fed ${this.#sent} readings; results ${results}, readings counted ${counted}, sum ${added} of ${expected}`)
    const exact = results === this.#sent && counted === this.#sent && added === expected
    say(exact ? 'nothing was lost, nothing came twice' : 'THE RESULTS ARE WRONG')
    return exact
  }

  async #results(): Promise<{ results: number; last: Map<string, { readings: number; sum: number }> }> {
    const last = new Map<string, { readings: number; sum: number }>()
    let results = 0
    const cursor = new RecordCursor()
    const all = Array.from({ length: partitions }, (_, partition) => ({ topic: 'totals', partition }))
    for (const { topic, partition, offset: end } of await this.#client.listOffsets(all, 'stable')) {
      for (let offset = 0; offset < end; ) {
        const [part] = await this.#client.fetch({
          partitions: [{ topic, partition, offset, maxBytes: 1 << 22 }],
          maxWaitMs: 100,
          maxBytes: 1 << 22,
          isolation: 'read_committed',
        })
        if (!part || part.records.length === 0) break
        cursor.reset(part.records, offset, part.aborted, 'read_committed')
        while (cursor.next()) {
          const key = Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)).toString()
          last.set(key, JSON.parse(Buffer.from(cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd)).toString()))
          results++
        }
        offset = Math.max(offset + 1, cursor.position)
      }
    }
    return { results, last }
  }
}

const demo = new Demo(await startEmbeddedBroker({ partitions }))
try {
  process.exitCode = (await demo.run()) ? 0 : 1
} finally {
  await demo.close()
}
