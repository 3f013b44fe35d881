/** What a pod knows from reading the coordinator topic from its beginning: a fold, the same on every pod. */
import { assert } from '../../base/assert.ts'
import type { RecordPlace } from '../../engine/ha-contract.ts'
import type {
  ClaimRecord,
  CommandRecord,
  Deletion,
  Fault,
  HaRecord,
  ReleaseRecord,
  ResultRecord,
  StatusRecord,
} from './records.ts'
import { keyOf, mostRefused, samePlace, standingCommands, statusKey } from './records.ts'

/** When something was read: by the pod's own clock, and by the one that runs only while its view is fresh. */
export interface Moment {
  readonly now: number
  readonly fresh: number
  /** False for what was there before the pod joined: how old that is nobody can tell. */
  readonly live: boolean
  /** When it was written, wall clock of the broker or of the writer: for people alone. */
  readonly at?: number
}

export interface Peer extends Moment {
  readonly status: StatusRecord
  /** Offset of the first record of this life. */
  readonly generation: number
  /** Since when, by the clock of fresh views, this life is known, and shows the state that it shows. */
  readonly lifeSince: number
  readonly stateSince: number
}

export interface Claim extends ClaimRecord, Moment {
  readonly offset: number
}

export interface Release extends ReleaseRecord, Moment {
  readonly offset: number
}

export interface Command extends CommandRecord, Moment {
  readonly offset: number
}

/** What an active pod runs. */
export interface Ran {
  readonly podId: string
  readonly topologyHash: string
  readonly topologyShape: ReadonlyMap<string, string>
}

/** Epochs, commands and results are kept this far back. */
const kept = 16
const mostCommands = 64
/** No pod has this name. */
const modeKey = ''

export class LogView {
  /** Offset of the next record to read. */
  position = 0
  /** Highest epoch that anybody claimed; 0 before the first. */
  epoch = 0
  /** Whether the application is paused, as its newest holder said. */
  paused = false
  readonly peers = new Map<string, Peer>()
  /** Pods that have said goodbye. */
  readonly left = new Set<string>()
  readonly commands = new Map<number, Command>()
  readonly results = new Map<number, ResultRecord>()
  readonly releases = new Map<number, Release>()
  /** The first claim of each epoch: the one that counts. */
  readonly #winners = new Map<number, Claim>()
  /** Every key of an epoch, to be deleted once it is long past. */
  readonly #keys = new Map<string, number>()
  readonly #commandIds = new Set<string>()
  /** An epoch whose holder failed for a poison record, seen as it happened. */
  inhibitedEpoch = -1
  readonly #faults = new Map<string, readonly Fault[]>()
  #lastFailover: Claim | undefined
  /** The newest PAUSE or RESUME, and the newest PRIORITY of each pod. */
  readonly #standing = new Map<string, Command>()
  /** Epochs under which a pod was seen to be active. */
  readonly #ran = new Set<number>()
  /** What the pod that was seen to be active last runs. */
  ran: Ran | undefined
  /** Parts that an active pod had, and a later one has not: what belongs to them has gaps since. */
  readonly abandoned = new Set<string>()

  /** Offset of the newest command that was read, refused or not; null before the first. */
  commandRead: number | null = null
  /** Offsets of the last commands whose signature is missing or wrong here. */
  refusedCommands: readonly number[] = []

  /** The newest claim that counts. */
  get holder(): Claim | undefined {
    return this.#winners.get(this.epoch)
  }

  /** The claims that count, oldest first. */
  claims(): Claim[] {
    return [...this.#winners.values()]
  }

  claimOf(epoch: number): Claim | undefined {
    return this.#winners.get(epoch)
  }

  /** Whether the holder of this epoch has become active, as far as it was seen. */
  ranUnder(epoch: number): boolean {
    return this.#ran.has(epoch) && this.releases.get(epoch)?.unused !== true
  }

  /** The release of the newest epoch, if its holder gave the token up. */
  get release(): Release | undefined {
    return this.releases.get(this.epoch)
  }

  /** The newest claim that a pod made by itself, for the holder's silence. */
  get lastFailover(): Claim | undefined {
    return this.#lastFailover
  }

  /** Whether an operator said that nobody is to fail over by himself. */
  get failoverPaused(): boolean {
    return this.#standing.get(modeKey)?.command === 'PAUSE'
  }

  /** What an operator said last about the priority of a pod; null: as configured. */
  priorityOf(podId: string): number | null {
    return this.#standing.get(podId)?.value ?? null
  }

  /** Commands that stand, oldest first. */
  standing(): Command[] {
    return [...this.#standing.values()]
  }

  refuse(offset: number): void {
    this.commandRead = offset
    this.refusedCommands = [...this.refusedCommands, offset].slice(-mostRefused)
  }

  /** What outlives the topic in which it was told. */
  inherit(old: LogView): void {
    this.paused = old.paused
    this.ran = old.ran
    for (const part of old.abandoned) this.abandoned.add(part)
    // Whatever is read from now on is newer.
    for (const [key, command] of old.#standing) this.#standing.set(key, { ...command, offset: -1 })
  }

  apply(record: HaRecord | Deletion, offset: number, moment: Moment): void {
    assert(offset >= 0, `a record stands at offset ${offset}`)
    this.position = Math.max(this.position, offset + 1)
    switch (record.kind) {
      case 'status':
        this.#status(record, offset, moment)
        break
      case 'claim':
        this.#claim({ ...record, ...moment, offset })
        break
      case 'release':
        this.#release({ ...record, ...moment, offset })
        break
      case 'command':
        this.#command({ ...record, ...moment, offset })
        break
      case 'result':
        this.results.set(record.commandOffset, record)
        this.#keys.set(keyOf(record), this.epoch)
        break
      case 'deleted':
        this.#deleted(record.key)
        break
      default:
    }
  }

  /** Whether the life of the pod that claimed is still the one that publishes. */
  isCurrent(claim: Pick<Claim, 'podId' | 'incarnation'>): boolean {
    return this.peers.get(claim.podId)?.status.incarnation === claim.incarnation
  }

  /** Keys of what is long past; the holder deletes them. */
  outdatedKeys(): string[] {
    const standing = new Set(this.standing().map(keyOf))
    const old = [...this.#keys].filter(([key, epoch]) => epoch <= this.epoch - kept && !standing.has(key))
    const keys = old.map(([key]) => key)
    const passing = [...this.commands.values()].filter((command) => !standing.has(keyOf(command)))
    const surplus = passing.slice(0, Math.max(0, this.commands.size - mostCommands))
    for (const command of surplus) keys.push(keyOf(command), `r/${command.offset}`)
    return keys
  }

  /** Whether this record made the engine of another pod restart. */
  failedElsewhere(place: RecordPlace, self: string): boolean {
    return [...this.#faults].some(([podId, faults]) => podId !== self && faults.some((each) => samePlace(each, place)))
  }

  #remember(podId: string, faults: readonly Fault[]): void {
    if (faults.length === 0) return
    this.#faults.delete(podId)
    this.#faults.set(podId, faults)
    for (const oldest of this.#faults.keys()) if (this.#faults.size > kept) this.#faults.delete(oldest)
  }

  #status(status: StatusRecord, offset: number, moment: Moment): void {
    const { holder } = this
    const isHolder = holder?.podId === status.podId && holder.incarnation === status.incarnation
    // Also where a younger process of that pod has spoken: until it has a claim of its own, this one runs.
    if (isHolder && status.tokenEpoch === this.epoch) this.paused = status.paused
    const known = this.peers.get(status.podId)
    const same = known?.status.incarnation === status.incarnation
    // A generation beyond the record itself is one of a topic that was deleted since.
    const told = status.generation !== null && status.generation <= offset ? status.generation : offset
    const generation = same ? known.generation : told
    // Late words of an earlier life change nothing: the younger one counts.
    if (known && !same && known.generation > generation) return
    const lifeSince = same ? known.lifeSince : moment.fresh
    const stateSince = same && known.status.state === status.state ? known.stateSince : moment.fresh
    this.left.delete(status.podId)
    this.peers.set(status.podId, { status, generation, lifeSince, stateSince, ...moment })
    this.#remember(status.podId, status.faults)
    // A build that this one does not know may have run under its epoch.
    if (status.role !== 'STANDBY') this.#ran.add(status.tokenEpoch)
    for (const oldest of this.#ran) if (this.#ran.size > kept) this.#ran.delete(oldest)
    if (!isHolder) return
    if (moment.live && status.role === 'ACTIVE' && status.tokenEpoch === this.epoch) this.#runs(status)
    // Binds those alone that saw it happen: a pod started since is somebody's decision to try again.
    const before = same ? known.status.handoffInhibited : true
    if (moment.live && status.state === 'FAILED' && status.handoffInhibited && !before) this.inhibitedEpoch = this.epoch
  }

  #runs({ podId, topologyHash, topologyShape }: StatusRecord): void {
    if (this.ran?.topologyHash !== topologyHash) {
      for (const part of this.ran?.topologyShape.keys() ?? []) this.abandoned.add(part)
    }
    for (const part of topologyShape.keys()) this.abandoned.delete(part)
    this.ran = { podId, topologyHash, topologyShape }
  }

  #claim(claim: Claim): void {
    this.#keys.set(keyOf(claim), claim.epoch)
    if (this.#winners.has(claim.epoch)) return
    this.#winners.set(claim.epoch, claim)
    if (claim.epoch <= this.epoch) return
    this.epoch = claim.epoch
    assert(this.holder === claim, 'the newest claim is the one that counts')
    if (claim.cause === 'FAILOVER') this.#lastFailover = claim
    for (const epoch of this.#winners.keys()) if (epoch < this.epoch - 2 * kept) this.#winners.delete(epoch)
  }

  /** Only the holder of an epoch can give it up. */
  #release(release: Release): void {
    const holder = this.#winners.get(release.epoch)
    if (holder?.podId !== release.podId || holder.incarnation !== release.incarnation) return
    this.#keys.set(keyOf(release), release.epoch)
    if (this.releases.has(release.epoch)) return
    this.releases.set(release.epoch, release)
    this.#remember(release.podId, release.faults)
    if (release.epoch === this.epoch) this.paused = release.paused
  }

  /** A command that is written a second time, under its own name, is no second command. */
  #command(command: Command): void {
    this.commandRead = command.offset
    if (this.#commandIds.has(command.id)) return
    this.#commandIds.add(command.id)
    this.commands.set(command.offset, command)
    // A result that was under way when the topic was made anew, of another command.
    const told = this.results.get(command.offset)
    if (told && told.commandId !== '' && told.commandId !== command.id) this.results.delete(command.offset)
    this.#keys.set(keyOf(command), this.epoch)
    if (!standingCommands.has(command.command)) return
    if (command.command === 'PRIORITY' && command.target === null) return
    const key = (command.command === 'PRIORITY' && command.target) || modeKey
    this.#standing.delete(key)
    this.#standing.set(key, command)
    for (const oldest of this.#standing.keys()) {
      if (this.#standing.size > mostCommands && oldest !== modeKey) this.#standing.delete(oldest)
    }
  }

  #deleted(key: string): void {
    this.#keys.delete(key)
    const slash = key.indexOf('/')
    const name = key.slice(slash + 1)
    if (key === statusKey(name)) {
      this.peers.delete(name)
      this.left.add(name)
    } else if (key.startsWith('l/')) this.releases.delete(Number(name))
    else if (key.startsWith('r/')) this.results.delete(Number(name))
    else if (key.startsWith('c/')) {
      for (const [offset, command] of this.commands) if (command.id === name) this.commands.delete(offset)
    }
  }
}
