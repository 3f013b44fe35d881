/** How long a reader of the output waits between two committed results: what a change of the active pod costs. */
import type { BrokerPort } from '../../../src/broker/port.ts'
import { endOfBatches } from '../../../src/broker/wire/record-batch.ts'
import type { Pods } from './pods.ts'

export class Gaps {
  readonly #client: BrokerPort
  readonly #running: Promise<void>
  #closed = false
  #lastAt = performance.now()
  #longestMs = 0

  private constructor(client: BrokerPort, topic: string) {
    this.#client = client
    this.#running = this.#run(topic)
  }

  static of(pods: Pods, topic: string): Gaps {
    const gaps = new Gaps(pods.broker.client(), topic)
    pods.endsWith(() => gaps.close())
    return gaps
  }

  /** The longest since the last call. */
  take(): number {
    const longest = Math.max(this.#longestMs, performance.now() - this.#lastAt)
    this.#longestMs = 0
    this.#lastAt = performance.now()
    return longest
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#running
    await this.#client.close()
  }

  async #run(topic: string): Promise<void> {
    const [info] = await this.#client.topics([topic])
    const positions = (
      await this.#client.listOffsets(
        Array.from({ length: info?.partitions ?? 0 }, (_, partition) => ({ topic, partition })),
        'stable',
      )
    ).map(({ partition, offset }) => ({ topic, partition, offset, maxBytes: 1 << 20 }))
    while (!this.#closed) {
      const request = { partitions: positions, maxWaitMs: 100, maxBytes: 1 << 24, isolation: 'read_committed' as const }
      const fetched = await this.#client.fetch(request)
      let came = false
      for (const part of fetched) {
        const position = positions.find((p) => p.partition === part.partition)
        if (!position) continue
        const next = endOfBatches(part.records, position.offset)
        came ||= next > position.offset
        position.offset = next
      }
      if (!came) continue
      const now = performance.now()
      this.#longestMs = Math.max(this.#longestMs, now - this.#lastAt)
      this.#lastAt = now
    }
  }
}
