/** What this client knows of the cluster: nodes, leaders, coordinators; and how a call finds its node. */
import { findCoordinatorV4, metadataV12 } from '@platformatic/kafka'
import type { TopicPartition } from '../../base/ids.ts'
import { BrokerError, type BrokerNode, type CallKind, isBroken } from '../port.ts'
import { Connections, drop, type Link, type Role } from './connections.ts'
import { answered, closedError, errorName, lost, neverAnswered, refused } from './errors.ts'
import { NodesSeen } from './nodes-seen.ts'
import { type Address, addressText, type Settings } from './options.ts'
import { Retrier } from './retry.ts'

export type CoordinatorKind = 'group' | 'transaction'
const coordinatorType: Readonly<Record<CoordinatorKind, number>> = { group: 0, transaction: 1 }

/** How long a topic may be missing before that is believed: what was made a moment ago is not known everywhere yet. */
export const unknownTopicPatienceMs = 1500
const unknownTopic = {
  codes: ['UNKNOWN_TOPIC_OR_PARTITION', 'UNKNOWN_TOPIC_ID', 'INCONSISTENT_TOPIC_ID'],
  forMs: unknownTopicPatienceMs,
}
const noLeader = -1

export interface TopicState {
  readonly topic: string
  readonly topicId: string
  readonly internal: boolean
  /** Node id of the leader by partition, -1 where there is none now. */
  readonly leaders: readonly number[]
  readonly readAtMs: number
}

type MetadataAnswer = Awaited<ReturnType<typeof metadataV12.api.async>>

export class Cluster {
  readonly settings: Settings
  readonly connections: Connections
  readonly retrier = new Retrier()
  readonly #nodes = new Map<number, Address>()
  readonly #topics = new Map<string, TopicState>()
  readonly #coordinators = new Map<string, Address>()
  readonly #seen = new NodesSeen()
  readonly #refreshing = new Map<string, Promise<TopicState[]>>()
  #rotation = 0
  #contacted = false
  #connected = false
  #fault: string | undefined
  #transactionVersion: number | undefined

  constructor(settings: Settings) {
    this.settings = settings
    this.connections = new Connections(settings)
  }

  get connected(): boolean {
    return this.#connected
  }

  /** What the last exchange that failed said; undefined while the last one went well. */
  get fault(): string | undefined {
    return this.#connected ? undefined : this.#fault
  }

  get nodesSeen(): readonly BrokerNode[] {
    return this.#seen.list(new Map([...this.#nodes].map(([id, address]) => [addressText(address), id])))
  }

  /** Of every node that belongs to the cluster. */
  get addresses(): readonly Address[] {
    return [...this.#nodes.values()]
  }

  /** True once any exchange went well. */
  get contacted(): boolean {
    return this.#contacted
  }

  async close(): Promise<void> {
    this.#connected = false
    this.retrier.close()
    await this.connections.close()
  }

  /** Repeats `attempt` while that can help. */
  retrying<T>(what: string, attempt: (tries: number) => Promise<T>): Promise<T> {
    const deadlineMs = (): number => (this.#contacted ? this.settings.deliveryTimeoutMs : this.settings.firstContactMs)
    // Without KRaft a topic is made by one node alone, and the others do not pass it on.
    const onFailure = ({ code }: BrokerError): void => {
      if (code === 'NOT_CONTROLLER') this.#rotation++
    }
    return this.retrier.run(what, { deadlineMs, also: unknownTopic, onFailure }, attempt).catch((error: unknown) => {
      const never = !this.#contacted && error instanceof BrokerError && error.code === 'NETWORK_EXCEPTION'
      throw never ? neverAnswered(this.settings.bootstrap, error) : error
    })
  }

  /** One exchange on the connection shared by a role. */
  async on<T>(
    address: Address,
    role: Role,
    what: string,
    call: (link: Link) => Promise<T>,
    kind: CallKind = role === 'produce' ? 'produce' : 'other',
  ): Promise<T> {
    return this.#exchange(address, kind, what, async () => {
      const link = await this.connections.shared(address, role)
      return this.#attempt(link, what, call)
    })
  }

  /** One exchange that may keep its connection busy for a while. */
  async alone<T>(
    address: Address,
    timeoutMs: number,
    what: string,
    call: (link: Link) => Promise<T>,
    kind: CallKind = 'other',
  ): Promise<T> {
    return this.#exchange(address, kind, what, () =>
      this.connections.exclusive(address, timeoutMs, (link) => this.#attempt(link, what, call)),
    )
  }

  /** One exchange with whichever node answers, each in turn. */
  async anywhere<T>(what: string, call: (link: Link) => Promise<T>, alone = false): Promise<T> {
    const addresses = this.#addresses()
    const first = this.#rotation
    let failure: unknown
    for (let i = 0; i < addresses.length; i++) {
      const address = addresses[(first + i) % addresses.length] as Address
      try {
        return alone
          ? await this.alone(address, this.settings.requestTimeoutMs, what, call)
          : await this.on(address, 'coordinate', what, call)
      } catch (error) {
        if (!(error instanceof BrokerError)) throw error
        const isUnreachable = error.errorClass === 'unreachable'
        // Whoever asks again begins with the next one, also where nobody knows whether this one did what it was asked.
        if (isUnreachable || error.code === 'NETWORK_EXCEPTION') this.#rotation = first + i + 1
        if (!isUnreachable) throw error
        failure = error
      }
    }
    throw failure
  }

  /** The feature level of the cluster, asked once there is a connection. */
  async transactionVersion(): Promise<number> {
    return (
      this.#transactionVersion ??
      this.retrying('asking for the features of the cluster', () =>
        this.anywhere('asking for its features', async (link) => link.versions.transactionVersion),
      )
    )
  }

  async onCoordinator<T>(
    kind: CoordinatorKind,
    key: string,
    what: string,
    call: (link: Link) => Promise<T>,
    over: 'coordinate' | 'commit' | { readonly aloneForMs: number } = 'coordinate',
  ): Promise<T> {
    return this.retrying(what, async () => {
      const address = await this.#coordinator(kind, key)
      try {
        return typeof over === 'string'
          ? await this.on(address, over, what, call, kind)
          : await this.alone(address, over.aloneForMs, what, call, kind)
      } catch (error) {
        if (error instanceof BrokerError && movesCoordinator(error)) this.#coordinators.delete(`${kind} ${key}`)
        throw error
      }
    })
  }

  /** What is known of a topic, asked for where needed; undefined where it does not exist. */
  async topic(name: string): Promise<TopicState | undefined> {
    const known = this.#topics.get(name)
    if (known && performance.now() - known.readAtMs < this.settings.metadataMaxAgeMs) return known
    await this.refresh([name])
    return this.#topics.get(name)
  }

  async leader({ topic, partition }: TopicPartition): Promise<Address> {
    const state = await this.topic(topic)
    const leader = state?.leaders[partition]
    if (state === undefined || leader === undefined) {
      throw refused(3, `the use of ${topic}:${partition}`, state ? 'The topic has no such partition.' : undefined)
    }
    const address = leader === noLeader ? undefined : this.#nodes.get(leader)
    if (!address) {
      this.forget([topic])
      throw refused(5, `the use of ${topic}:${partition}`, 'The partition has no leader at the moment.')
    }
    return address
  }

  #knownLeader({ topic, partition }: TopicPartition): Address | undefined {
    const state = this.#topics.get(topic)
    if (state === undefined || performance.now() - state.readAtMs >= this.settings.metadataMaxAgeMs) return undefined
    const leader = state.leaders[partition]
    return leader === undefined ? undefined : this.#nodes.get(leader)
  }

  /** Partitions by the node that leads them; those whose leader is not to be had are left to `failed`. */
  async byLeader<T extends TopicPartition>(
    items: readonly T[],
    failed: (item: T, error: BrokerError) => void,
  ): Promise<Map<string, { address: Address; items: T[] }>> {
    const missing = [...new Set(items.map((item) => item.topic))].filter((topic) => !this.#topics.has(topic))
    if (missing.length) await this.refresh(missing)
    const groups = new Map<string, { address: Address; items: T[] }>()
    for (const item of items) {
      try {
        // Hundreds of partitions whose leaders are known do not wait for one another.
        const address = this.#knownLeader(item) ?? (await this.leader(item))
        const key = addressText(address)
        const group = groups.get(key)
        if (group) group.items.push(item)
        else groups.set(key, { address, items: [item] })
      } catch (error) {
        if (!(error instanceof BrokerError)) throw error
        failed(item, error)
      }
    }
    return groups
  }

  /** Makes the next use of these topics ask the cluster. */
  forget(topics: Iterable<string>): void {
    for (const topic of topics) this.#topics.delete(topic)
  }

  /** Asks for topics by name, or for all; one exchange, shared by all who ask the same meanwhile. */
  async refresh(names: readonly string[] | null): Promise<TopicState[]> {
    const key = names === null ? '*' : [...names].sort().join(',')
    const running = this.#refreshing.get(key)
    if (running) return running
    const refresh = this.#refresh(names).finally(() => this.#refreshing.delete(key))
    this.#refreshing.set(key, refresh)
    return refresh
  }

  async #refresh(names: readonly string[] | null): Promise<TopicState[]> {
    const what = names?.length ? `describing ${names.slice(0, 3).join(', ')}` : 'describing the cluster'
    const answer = await this.anywhere(what, (link) =>
      answered(metadataV12.api.async(link.connection, names === null ? null : [...names], false, false)),
    )
    this.#nodes.clear()
    for (const { nodeId, host, port } of answer.brokers) this.#nodes.set(nodeId, { host, port })
    const states: TopicState[] = []
    for (const topic of answer.topics) {
      const state = this.#learn(topic, what)
      if (state) states.push(state)
    }
    return states
  }

  #learn(topic: MetadataAnswer['topics'][number], what: string): TopicState | undefined {
    const name = topic.name ?? ''
    if (errorName(topic.errorCode) === 'UNKNOWN_TOPIC_OR_PARTITION') {
      this.#topics.delete(name)
      return undefined
    }
    if (topic.errorCode !== 0) throw refused(topic.errorCode, what)
    const leaders = new Array<number>(topic.partitions.length).fill(noLeader)
    for (const { partitionIndex, leaderId } of topic.partitions) leaders[partitionIndex] = leaderId
    const state: TopicState = {
      topic: name,
      topicId: topic.topicId,
      internal: topic.isInternal,
      leaders,
      readAtMs: performance.now(),
    }
    this.#topics.set(name, state)
    return state
  }

  async #coordinator(kind: CoordinatorKind, key: string): Promise<Address> {
    const known = this.#coordinators.get(`${kind} ${key}`)
    if (known) return known
    const what = `finding the coordinator of ${kind === 'group' ? 'group' : 'transactional id'} ${key}`
    const answer = await this.anywhere(what, (link) =>
      answered(findCoordinatorV4.api.async(link.connection, coordinatorType[kind], [key])),
    )
    const found = answer.coordinators[0]
    if (!found) throw refused(15, what)
    if (found.errorCode !== 0) throw refused(found.errorCode, what, found.errorMessage)
    const address = { host: found.host, port: found.port }
    this.#coordinators.set(`${kind} ${key}`, address)
    return address
  }

  #addresses(): Address[] {
    return [...this.#nodes.values(), ...this.settings.bootstrap]
  }

  async #attempt<T>(link: Link, what: string, call: (link: Link) => Promise<T>): Promise<T> {
    this.#transactionVersion = link.versions.transactionVersion
    try {
      return await call(link)
    } catch (error) {
      // What is no answer of the broker is a fault of the connection, or bytes that nobody could read: either way
      // the connection is of no more use.
      if (error instanceof BrokerError) throw error
      drop(link.connection)
      throw lost(what, link.address, error)
    }
  }

  async #exchange<T>(address: Address, kind: CallKind, what: string, exchange: () => Promise<T>): Promise<T> {
    if (this.retrier.closed) throw closedError(what)
    const underWay = this.#seen.begin(address, kind, what)
    try {
      const answer = await exchange()
      this.#seen.end(underWay, null)
      this.#contacted = true
      this.#connected = true
      return answer
    } catch (error) {
      const broken = error instanceof BrokerError && isBroken(error)
      this.#seen.end(underWay, broken ? error.message : null)
      this.#connected = !broken && !this.retrier.closed
      if (broken) this.#fault = error.message
      else this.#contacted = true
      throw error
    }
  }
}

const moving: ReadonlySet<string> = new Set([
  'NOT_COORDINATOR',
  'COORDINATOR_NOT_AVAILABLE',
  'NETWORK_EXCEPTION',
  'UNREACHABLE',
])
function movesCoordinator(error: BrokerError): boolean {
  return moving.has(error.code)
}
