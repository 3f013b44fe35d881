/**
 * A pod that is nothing but its heartbeats: real records on the real coordinator topic, in whatever state a test wants
 * it. It takes part in no decision of its own: what it is asked to take over it lets lie.
 */
import { consume } from '../../engine/support/engine.ts'
import { coordinatorTopic } from '../../../src/ha/contract.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import type { Pods } from './pods.ts'

const everyMs = 100

export interface PeerLooks {
  readonly role: string
  readonly state: string
  readonly restarting: boolean
  readonly failoverPriority: number
  readonly lagRecords: number
  readonly lagMs: number
}

export class SyntheticPeer {
  readonly #pods: Pods
  readonly #topic: string
  readonly #podId: string
  looks: PeerLooks
  #own: Record<string, unknown> = {}
  #beat = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<unknown> = Promise.resolve()

  private constructor(pods: Pods, applicationId: string, podId: string, looks: PeerLooks) {
    this.#pods = pods
    this.#topic = coordinatorTopic(applicationId)
    this.#podId = podId
    this.looks = looks
  }

  /** What a pod says of its build and topology it has from a real one: all are of one kind. */
  static async start(pods: Pods, applicationId: string, podId: string, looks: PeerLooks): Promise<SyntheticPeer> {
    const peer = new SyntheticPeer(pods, applicationId, podId, looks)
    peer.#own = await pods.until('a real pod has said what it is', async () => {
      const status = (await consume(pods.client, peer.#topic)).findLast(({ key }) => key?.startsWith('s/') === true)
      return status?.value as Record<string, unknown> | undefined
    })
    pods.endsWith(() => peer.stop())
    peer.#say()
    return peer
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#sending
  }

  #say(): void {
    this.#sending = this.#write().catch(() => undefined)
    this.#timer = setTimeout(() => this.#say(), everyMs)
  }

  async #write(): Promise<void> {
    const { lagRecords, lagMs, ...looks } = this.looks
    const value = {
      ...this.#own,
      ...looks,
      podId: this.#podId,
      lagRecords,
      lagMs,
      incarnation: `synthetic-${this.#podId}`,
      generation: this.#beat === 0 ? null : 2,
      paused: false,
      tokenEpoch: 0,
      commitId: null,
      heartbeat: ++this.#beat,
    }
    const builder = new RecordBatchBuilder()
    builder.append(Date.now(), Buffer.from(`s/${this.#podId}`), Buffer.from(JSON.stringify(value)), [])
    await this.#pods.client.produce({
      transactionalId: null,
      batches: [{ topic: this.#topic, partition: 0, records: builder.finish() }],
    })
  }
}
