/** What must hold of a finished run: judged from what lies in the broker, and from what was told to the engines. */
import { compareTags } from '../../src/engine/commit/tag.ts'
import type { RawRecord } from '../../src/ha/events.ts'
import {
  type ClaimRecord,
  decode,
  type HaRecord,
  type ReleaseRecord,
  type ResultRecord,
} from '../../src/ha/log/records.ts'
import type { World } from './world.ts'

type At<T> = T & { readonly offset: number }

export async function checkWorld(world: World): Promise<void> {
  await world.drive(world.stage.check(world.cluster, (what) => world.violate(what)))
  checkChain(world)
  const current = await world.log()
  const logs = [...world.deletedLogs, current]
  for (const log of logs) {
    checkJustice(world, log)
    // What led to a claim may lie in a log that is gone.
    if (logs.length === 1) checkPriorities(world, log)
  }
  // Where records are lost two pods may win the same epoch; fencing keeps the data right.
  const whole = logs.length === 1 && !world.logFaults.emptied
  if (whole) {
    checkPromotions(world, current)
    checkPause(world, current)
    checkMaintenance(world, current)
    checkUpdate(world, current)
  }
  checkCommands(world, current)
}

/** One chain of commits, and one process for each epoch. */
function checkChain(world: World): void {
  let last = { tokenEpoch: 0, seq: 0, podId: '', owner: 0 }
  for (const commit of world.commits) {
    if (compareTags(commit, last) <= 0) {
      world.violate(
        `commit ${commit.tokenEpoch}.${commit.seq} of ${commit.podId} came after ${last.tokenEpoch}.${last.seq}`,
      )
    }
    if (commit.tokenEpoch === last.tokenEpoch && commit.owner !== last.owner)
      world.violate(`${commit.podId} and ${last.podId} both committed under epoch ${commit.tokenEpoch}`)
    last = commit
  }
}

/** Each log is decoded once. */
const decoded = new WeakMap<readonly RawRecord[], ReadonlyArray<At<ReturnType<typeof decode>>>>()

function decodeLog(log: readonly RawRecord[]): ReadonlyArray<At<ReturnType<typeof decode>>> {
  const known = decoded.get(log) ?? log.map(({ key, value, offset }) => ({ ...decode(key, value), offset }))
  decoded.set(log, known)
  return known
}

function records<K extends HaRecord['kind']>(log: readonly RawRecord[], kind: K): Array<At<HaRecord & { kind: K }>> {
  return decodeLog(log).filter((record) => record.kind === kind) as unknown as Array<At<HaRecord & { kind: K }>>
}

/** In a run whose only trouble is the broker, the active's restarts, or standbys that come and go, nobody fails over. */
function checkJustice(world: World, log: readonly RawRecord[]): void {
  const { profile } = world.derived
  // A pod whose disk fails again and again while it is promoted has a reason to hand over.
  if (profile === 'wild' || world.stage.disksFail) return
  const claims = records(log, 'claim')
  const first = claims.find((claim) => claim.epoch === 1)
  // Who boots first may be decided among several; after that, nobody has a reason.
  const unjust = claims.find((claim) => claim.epoch > (first?.epoch ?? 0))
  if (unjust)
    world.violate(`${unjust.podId} claims epoch ${unjust.epoch} (${unjust.cause}) in a run of pure ${profile}`)
}

/** Priority 0 never takes over by itself. */
function checkPriorities(world: World, log: readonly RawRecord[]): void {
  const releases = records(log, 'release')
  for (const claim of records(log, 'claim')) {
    if (world.derived.priorities[Number(claim.podId.slice(1))] !== 0 || claim.cause === 'PROMOTE') continue
    const named = releases.some((release) => release.epoch === claim.epoch - 1 && mayFollow(release, claim))
    if (!named) world.violate(`${claim.podId} has priority 0 and claims epoch ${claim.epoch} (${claim.cause})`)
  }
}

/** Named as target, or the one that handed over and goes on. */
function mayFollow(release: ReleaseRecord, claim: ClaimRecord): boolean {
  return release.target === claim.podId || release.podId === claim.podId
}

/** Only the pod whose claim of an epoch came first was told to run under it. */
function checkPromotions(world: World, log: readonly RawRecord[]): void {
  const claims = records(log, 'claim')
  for (const { podId, incarnation, epoch } of world.promotions) {
    const winner = claims.find((claim) => claim.epoch === epoch)
    if (winner?.podId === podId && winner.incarnation === incarnation) continue
    world.violate(`${podId} runs under epoch ${epoch}, which ${winner?.podId ?? 'nobody'} has won`)
  }
}

/** Who claims by himself, neither named by an operator nor after a release, an epoch that another pod held before. */
function byThemselves(log: readonly RawRecord[]): Array<At<ClaimRecord>> {
  const winners = new Map<number, ClaimRecord>()
  const released = new Set<number>()
  const found: Array<At<ClaimRecord>> = []
  let epoch = 0
  for (const record of decodeLog(log)) {
    if (record.kind === 'release') released.add(record.epoch)
    if (record.kind !== 'claim') continue
    const before = winners.get(epoch)
    const free = before === undefined || released.has(epoch) || before.podId === record.podId
    if (!free && record.commandOffset === null) found.push(record)
    if (!winners.has(record.epoch)) winners.set(record.epoch, record)
    epoch = Math.max(epoch, record.epoch)
  }
  return found
}

/** A claim is made on a view that is fresh, and arrives soon or never. */
const underWayMs = 2500

/** While failover is paused the role stays with its pod. */
function checkMaintenance(world: World, log: readonly RawRecord[]): void {
  for (const claim of byThemselves(log)) {
    const key = `t/${claim.epoch}/${claim.podId}/${claim.nonce}`
    const pausedForMs = world.logFaults.claims.find((each) => each.key === key)?.pausedForMs
    if (pausedForMs === undefined || pausedForMs < underWayMs) continue
    world.violate(`${key} was claimed while failover had been paused for ${Math.round(pausedForMs)} ms`)
  }
}

/** What is told in about half a second. */
const toldRecords = 15

/** A pod that has seen the next build run does not take over with the one before: a store would get a gap. */
function checkUpdate(world: World, log: readonly RawRecord[]): void {
  const actives = records(log, 'status').filter(({ role, tokenEpoch }) => role === 'ACTIVE' && tokenEpoch > 0)
  const next = actives.find(({ incarnation }) => world.updated.has(incarnation))
  if (next === undefined) return
  for (const claim of byThemselves(log)) {
    if (world.updated.has(claim.incarnation) || claim.offset < next.offset + toldRecords) continue
    const born = records(log, 'status').find(({ incarnation }) => incarnation === claim.incarnation)
    if (born === undefined || born.offset + toldRecords > next.offset) continue
    world.violate(`${claim.podId} claims epoch ${claim.epoch} with a build that lacks a store of the one that ran`)
  }
}

/** A pod that is promoted is paused if and only if its predecessor was when it last said so. */
function checkPause(world: World, log: readonly RawRecord[]): void {
  const winners = new Map<number, ClaimRecord>()
  const pausedBefore = new Map<number, boolean>()
  let epoch = 0
  let paused = false
  for (const record of decodeLog(log)) {
    if (record.kind === 'claim' && !winners.has(record.epoch)) {
      winners.set(record.epoch, record)
      if (record.epoch > epoch) {
        epoch = record.epoch
        pausedBefore.set(epoch, paused)
      }
    }
    const winner = winners.get(epoch)
    if (record.kind === 'status' && record.tokenEpoch === epoch && record.incarnation === winner?.incarnation)
      paused = record.paused
    if (record.kind === 'release' && record.epoch === epoch && record.incarnation === winner?.incarnation)
      paused = record.paused
  }
  for (const promotion of world.promotions) {
    const expected = pausedBefore.get(promotion.epoch)
    if (expected !== undefined && expected !== promotion.paused)
      world.violate(`${promotion.podId} was promoted to epoch ${promotion.epoch} with paused ${promotion.paused}`)
  }
}

/** Every command has one result, was carried out at most once, and `DONE` is true. */
function checkCommands(world: World, log: readonly RawRecord[]): void {
  const results = records(log, 'result')
  const releases = records(log, 'release')
  const claims = records(log, 'claim')
  for (const [offset, command] of world.commands) {
    const name = `${command.command} at ${offset}`
    const id = records(log, 'command').find((each) => each.offset === offset)?.id
    const own = results.filter((result) => result.commandOffset === offset && result.commandId === id)
    const outcomes = new Set(own.map((r) => r.outcome))
    // A refusal that is under way while the next active pod lets the command expire says the same: it was not done.
    if (outcomes.size === 2) outcomes.delete('EXPIRED')
    if (outcomes.size !== 1 || outcomes.has('UNKNOWN'))
      world.violate(`${name} has ${outcomes.size} results: ${[...outcomes].join(', ')}`)
    const carriedOut = new Set(releases.filter((r) => r.commandOffset === offset).map((r) => r.epoch))
    if (carriedOut.size > 1) world.violate(`${name} was carried out in epochs ${[...carriedOut].join(', ')}`)
    const [outcome] = outcomes as Set<ResultRecord['outcome']>
    if (outcome !== 'DONE') continue
    const led = claims.some(
      (claim) => claim.commandOffset === offset || [...carriedOut].some((epoch) => claim.epoch > epoch),
    )
    if (!led) world.violate(`${name} is DONE, and nobody took over`)
  }
}
