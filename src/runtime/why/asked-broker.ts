/** What the diagnosis asks the broker: over the engine's thread, and without waiting for anybody. */
import type { TopicPartition } from '../../base/ids.ts'
import type { OpenTransaction } from '../../broker/port.ts'
import type { BrokerAnswer, BrokerQuestion, PlaceHolder } from '../../engine/recovery/broker-questions.ts'

/** Keeps who asked, until the engine's thread has the answer; it may never come. */
export class AskedBroker {
  readonly #send: (id: number, question: BrokerQuestion) => void
  readonly #asked = new Map<number, (answer: BrokerAnswer) => void>()
  #lastId = 0

  constructor(send: (id: number, question: BrokerQuestion) => void) {
    this.#send = send
  }

  /** Who has the place of a static member; null where nobody has, or the broker does not tell. */
  async place(groupId: string, groupInstanceId: string): Promise<PlaceHolder | null> {
    return (await this.#ask({ what: 'place', groupId, groupInstanceId })) as PlaceHolder | null
  }

  /** Empty where the broker does not tell. */
  async openTransactions(at: TopicPartition): Promise<readonly OpenTransaction[]> {
    return ((await this.#ask({ what: 'transactions', at })) as readonly OpenTransaction[] | null) ?? []
  }

  answered(id: number, answer: BrokerAnswer): void {
    this.#asked.get(id)?.(answer)
    this.#asked.delete(id)
  }

  #ask(question: BrokerQuestion): Promise<BrokerAnswer> {
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#asked.set(id, resolve)
      this.#send(id, question)
    })
  }
}
