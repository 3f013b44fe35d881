/**
 * Questions of the control thread to the broker, asked from the engine's thread: it has the broker's client already, and
 * loading that costs seconds on a busy machine, in which the control thread could answer nobody.
 */
import { type BrokerAddress, connectBroker } from '../../broker/connect.ts'
import type { TopicPartition } from '../../base/ids.ts'
import type { BrokerPort, GroupDescription, OpenTransaction } from '../../broker/port.ts'
import { decodeSubscription, type MemberIdentity } from '../group/membership-codec.ts'

export type BrokerQuestion =
  | { readonly what: 'place'; readonly groupId: string; readonly groupInstanceId: string }
  | { readonly what: 'transactions'; readonly at: TopicPartition }

/** Who has the place of a static member; without client and host as long as nobody knows them. */
export interface PlaceHolder {
  readonly memberId: string
  readonly client: string | null
  readonly host: string | null
}

/** Null: there is none, or the broker did not tell. */
export type BrokerAnswer = PlaceHolder | readonly OpenTransaction[] | null

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
      return question.what === 'place'
        ? holderOf(await broker.describeGroup(question.groupId), question.groupInstanceId)
        : await broker.openTransactions(question.at)
    } catch {
      // It may not be allowed to ask, or the broker does not answer: that has a finding of its own.
      return null
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    // Where no client could be made, whoever asked has been told.
    const own = await this.#own?.catch(() => undefined)
    await own?.close()
  }

  /** Connections of its own: what fails here says nothing of how the engine fares. */
  #client(): Promise<BrokerPort> | BrokerPort {
    if (this.#address.kind === 'embedded') return this.#engines
    this.#own ??= connectBroker(this.#address)
    return this.#own
  }
}

/**
 * Kafka goes on telling client and address of whoever had the place first, so that whoever was fenced would read its own:
 * the newcomer is known by what it says of itself, once the group is at rest.
 */
function holderOf({ members }: GroupDescription, groupInstanceId: string): PlaceHolder | null {
  const member = members.find((each) => each.groupInstanceId === groupInstanceId)
  if (member === undefined) return null
  const { memberId, clientId, clientHost, metadata } = member
  if (metadata === undefined) return { memberId, client: null, host: null }
  const identity = identityIn(metadata)
  return identity === undefined
    ? { memberId, client: clientId, host: clientHost?.replace(/^\//, '') ?? null }
    : { memberId, client: identity.client ?? null, host: identity.host ?? null }
}

function identityIn(metadata: Uint8Array): MemberIdentity | undefined {
  try {
    return decodeSubscription(metadata).identity
  } catch {
    // A member of another kind may say anything there.
    return undefined
  }
}
