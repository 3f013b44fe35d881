/**
 * Questions of the control thread to the broker, asked from the engine's thread: it has the broker's client already, and
 * loading that costs seconds on a busy machine, in which the control thread could answer nobody.
 */
import { type BrokerAddress, connectBroker } from '../../broker/connect.ts'
import type { TopicPartition } from '../../base/ids.ts'
import type { BrokerPort, GroupDescription, OpenTransaction } from '../../broker/port.ts'

export type BrokerQuestion =
  | { readonly what: 'group'; readonly groupId: string }
  | { readonly what: 'transactions'; readonly at: TopicPartition }

/** Null: the broker did not tell. */
export type BrokerAnswer = GroupDescription | readonly OpenTransaction[] | null

export class BrokerQuestions {
  readonly #engines: BrokerPort
  readonly #address: BrokerAddress
  #own: Promise<BrokerPort> | undefined
  #closed = false

  constructor(engines: BrokerPort, address: BrokerAddress) {
    this.#engines = engines
    this.#address = address
  }

  async answer(question: BrokerQuestion): Promise<BrokerAnswer> {
    if (this.#closed) return null
    try {
      const broker = await this.#client()
      return question.what === 'group'
        ? await broker.describeGroup(question.groupId)
        : await broker.openTransactions(question.at)
    } catch {
      // It may not be allowed to ask, or the broker does not answer: that has a finding of its own.
      return null
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await (await this.#own)?.close()
  }

  /** Connections of its own: what fails here says nothing of how the engine fares. */
  #client(): Promise<BrokerPort> | BrokerPort {
    if (this.#address.kind === 'embedded') return this.#engines
    this.#own ??= connectBroker(this.#address)
    return this.#own
  }
}
