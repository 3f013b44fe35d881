/** Records, settings and a pod's coordinator, for tests: every test says only what it is about. */
import { Random } from '../../../src/base/random.ts'
import type { HaCommandToEngine, StandbyProgress } from '../../../src/engine/ha-contract.ts'
import type { HaSettings } from '../../../src/ha/contract.ts'
import { Coordinator } from '../../../src/ha/coordinator.ts'
import type { HaEffect, HaEvent } from '../../../src/ha/events.ts'
import {
  type CommandRecord,
  type Encoded,
  encode,
  type HaRecord,
  type ResultRecord,
  type StatusRecord,
} from '../../../src/ha/log/records.ts'
import { statusOf } from '../../../src/ha/shown/status.ts'
import type { HaStatus } from '../../../src/ha/shown/view.ts'

export function settings(change: Partial<HaSettings> = {}): HaSettings {
  return {
    applicationId: 'app',
    groupId: 'app',
    podId: 'me',
    desiredStandbys: 1,
    failoverPriority: 100,
    heartbeatIntervalMs: 100,
    selfFenceTimeoutMs: 800,
    failoverTimeoutMs: 1000,
    handoffTimeoutMs: 1000,
    commandTtlMs: 6000,
    claimStaggerMs: 75,
    minPromotionIntervalMs: 0,
    readyMaxLagRecords: 100,
    readyMaxLagMs: 500,
    allowUnreadyFailover: true,
    requireSafeTopic: false,
    commandSecret: null,
    topologyHash: 'same',
    topologyShape: new Map(),
    configHashes: {},
    build: 'test',
    ...change,
  }
}

export function statusRecord(fields: Partial<StatusRecord>): StatusRecord {
  return {
    kind: 'status',
    podId: 'peer',
    understood: true,
    incarnation: 'life',
    generation: null,
    role: 'STANDBY',
    state: 'READY_STANDBY',
    restarting: false,
    paused: false,
    tokenEpoch: 0,
    tokenEpochSeen: 0,
    commitId: null,
    lagRecords: 0,
    lagMs: 0,
    diskFull: false,
    failoverPriority: 100,
    topologyHash: 'same',
    topologyShape: new Map(),
    configHashes: new Map(),
    build: 'test',
    faults: [],
    handoffInhibited: false,
    commandRead: null,
    refusedCommands: [],
    heartbeat: 1,
    ...fields,
  }
}

export function commandRecord(fields: {
  id: string
  target: string | null
  force: boolean
  expectEpoch: number
}): CommandRecord {
  return { kind: 'command', command: 'PROMOTE', issuer: 'me', from: null, value: null, signature: null, ...fields }
}

const caughtUp: StandbyProgress = { open: true, lagRecords: 0, lagMs: 0, freshnessMs: 0 }

/** One coordinator over a log that is a list: what it appends is read back with the next `pass`. */
export class Bench {
  readonly machine: Coordinator
  readonly log: Encoded[] = []
  readonly commands: HaCommandToEngine[] = []
  readonly effects: HaEffect[] = []
  now = 0
  #read = 0
  /** Whether the broker answers. */
  online = true
  /** Whether what is appended arrives. */
  writable = true

  constructor(change: Partial<HaSettings> = {}, seed = 1) {
    this.machine = new Coordinator(settings(change), new Random(seed))
  }

  get status(): HaStatus {
    return statusOf(this.machine.pod, this.now)
  }

  get state(): string {
    return this.machine.pod.state
  }

  step(event: HaEvent): void {
    for (const effect of this.machine.step(event, this.now)) {
      this.effects.push(effect)
      if (effect.type === 'append' && this.online && this.writable) this.log.push(...effect.records)
      if (effect.type === 'engine') this.commands.push(effect.command)
    }
  }

  fact(fact: Extract<HaEvent, { type: 'fact' }>['fact']): void {
    this.step({ type: 'fact', fact })
  }

  /** Another pod, or anybody, writes; answers with the offset. */
  write(record: HaRecord | Encoded): number {
    this.log.push('kind' in record ? encode(record) : record)
    return this.log.length - 1
  }

  read(): void {
    if (!this.online) return
    const records = this.log.slice(this.#read).map((record, i) => ({ ...record, offset: this.#read + i }))
    this.#read = this.log.length
    if (records.length > 0) this.step({ type: 'records', records })
    this.step({ type: 'end-reached' })
  }

  join(tagEpoch = 0): void {
    this.read()
    this.step({ type: 'joined', tagEpoch })
    this.fact({ type: 'standby' })
    this.fact({ type: 'standby-progress', progress: caughtUp })
  }

  /** Time goes by in small steps, in which the log is read; `each` runs in every step. */
  pass(ms: number, each?: () => void): void {
    for (const until = this.now + ms; this.now < until; ) {
      this.now += 25
      each?.()
      this.read()
      this.step({ type: 'tick' })
    }
  }

  /** Heartbeats of another pod, for `pass`. */
  beats(fields: Partial<StatusRecord>): () => void {
    let at = Number.NEGATIVE_INFINITY
    return () => {
      if (this.now - at < 100) return
      at = this.now
      this.write(statusRecord(fields))
    }
  }

  /** The engine does as it is told, up to processing. */
  promote(): void {
    const promote = this.commands.findLast((command) => command.type === 'ha-promote')
    this.fact({ type: 'identity-taken', tokenEpoch: promote?.type === 'ha-promote' ? promote.tokenEpoch : 0 })
    this.pass(50)
    this.fact({ type: 'running' })
  }

  /** Joined, booted, and active. */
  active(): void {
    this.join()
    this.pass(400)
    this.promote()
  }

  told(type: HaCommandToEngine['type']): number {
    return this.commands.filter((command) => command.type === type).length
  }

  /** Keys of this kind in the log. */
  keys(prefix: string): string[] {
    return this.log.filter(({ key }) => key.startsWith(prefix)).map(({ key }) => key)
  }
}

/** The result of the command at this offset. */
export const result = (bench: Bench, offset: number): ResultRecord | undefined =>
  bench.log
    .filter(({ key }) => key === `r/${offset}`)
    .map(({ value }) => JSON.parse(value ?? 'null') as ResultRecord)
    .at(0)

export const claimOf = (epoch: number, podId: string, incarnation = 'life') =>
  ({ kind: 'claim', epoch, podId, nonce: 'n', incarnation, cause: 'BOOT', commandOffset: null, why: '' }) as const

/** This pod stands by; another one is active under epoch 1, and beats. */
export function standingBy(change: ConstructorParameters<typeof Bench>[0] = {}, fields: Partial<StatusRecord> = {}) {
  const bench = new Bench(change)
  const active = { podId: 'active', role: 'ACTIVE', state: 'ACTIVE', tokenEpoch: 1, ...fields } as const
  bench.write(statusRecord(active))
  bench.write(claimOf(1, 'active'))
  bench.join()
  const beats = bench.beats(active)
  bench.pass(500, beats)
  return { bench, beats, active }
}
