/**
 * The coordinator of one pod as a state machine: events in, effects out, nothing else. It decides who should run.
 * Whether data is right rests on the transaction coordinator's fencing alone, so a wrong decision costs time, never data.
 *
 * Every step folds what was read, and then goes through the same list of rules; each is about what is the case now, not
 * about what happened last. What was lost on its way is therefore simply decided anew.
 */
import { assert, unreachable } from '../base/assert.ts'
import type { Random } from '../base/random.ts'
import type { HaFact } from '../engine/ha-contract.ts'
import type { EngineFact } from '../engine/protocol.ts'
import { EngineError } from '../base/errors.ts'
import { actOnCommands, publishResults, refuse } from './commands.ts'
import type { HaSettings } from './contract.ts'
import { turn, vacancy } from './decide.ts'
import { type HaEffect, type HaEvent, Out, type RawRecord } from './events.ts'
import { exhausted, goOnHandingOver, goOnStopping, handedOver, steppedDown, tooLateToPause } from './hand-over.ts'
import { beat, heartbeatBack, sayGoodbye } from './heartbeat.ts'
import { LogView } from './log/log-view.ts'
import { refusalText } from './shown/not-ready.ts'
import { Pod } from './pod.ts'
import {
  engage,
  giveUpWhereStuck,
  identityTaken,
  reclaim,
  retell,
  running,
  selfFence,
  stepDown,
  takeAnswers,
  tidy,
  yieldToNewer,
} from './promotion.ts'
import { decode, type Fault, mostFaults, samePlace } from './log/records.ts'
import { signatureHolds } from './log/signature.ts'
import { checkReadiness, claimIfDue, diskFull, type Rules } from './standby.ts'
import { askAgain, readBack, verify } from './verify.ts'

export const defaultRules: Rules = { vacancy, turn }

export class Coordinator {
  readonly pod: Pod
  readonly #rules: Rules
  readonly #out = new Out()

  constructor(settings: HaSettings, random: Random, rules: Rules = defaultRules) {
    this.pod = new Pod(settings, random)
    this.#rules = rules
  }

  step(event: HaEvent, now: number): HaEffect[] {
    const { pod } = this
    if (pod.ended) return []
    switch (event.type) {
      case 'records':
        for (const record of event.records) this.#read(record, now)
        break
      case 'end-reached':
        pod.fresh.reachedEnd(now)
        break
      case 'joined':
        pod.joined = true
        pod.joinedFresh = pod.fresh.value
        pod.baseEpoch = event.tagEpoch
        pod.logIsNew = event.tagEpoch > pod.view.epoch
        break
      case 'topic-recreated':
        this.#topicRecreated(event.tagEpoch)
        break
      case 'fact':
        this.#fact(event.fact, now)
        break
      case 'pause-intent':
        if (tooLateToPause(pod) === null) pod.paused = event.paused
        break
      case 'stop':
        pod.stopping = true
        break
      case 'write-failed':
        this.#writeFailed(event)
        break
      case 'tick':
        checkReadiness(pod, now)
        break
      default:
        unreachable(event)
    }
    if (pod.joined) this.#decide(now)
    checkPod(pod)
    return this.#out.take()
  }

  #decide(now: number): void {
    const { pod } = this
    const out = this.#out
    if (this.#isReplaced()) return
    reclaim(pod, out, now)
    retell(pod, out, now)
    goOnHandingOver(pod, out, now)
    yieldToNewer(pod, out)
    engage(pod, out, now)
    askAgain(pod, out, now)
    takeAnswers(pod, out, now)
    giveUpWhereStuck(pod, out, now)
    selfFence(pod, out, now)
    goOnStopping(pod, out, now)
    actOnCommands(pod, out, now)
    publishResults(pod, out, now)
    claimIfDue(pod, out, this.#rules, now)
    tidy(pod, out, now)
    sayGoodbye(pod, out, now)
    if (!pod.ended && pod.goodbyeAt === Number.NEGATIVE_INFINITY) beat(pod, out, now)
  }

  #read({ offset, key, value, timestamp }: RawRecord, now: number): void {
    const { pod } = this
    const { applicationId, commandSecret } = pod.settings
    const record = decode(key, value)
    pod.view.position = Math.max(pod.view.position, offset + 1)
    const forged =
      record.kind === 'command' && commandSecret !== null && !signatureHolds(commandSecret, applicationId, record)
    if (record.kind === 'bad' || forged) {
      pod.badRecords++
      if (record.kind === 'command') refuse(pod, record, offset)
      const why = record.kind === 'bad' ? record.why : 'its signature is missing or wrong'
      this.#out.log('warn', `the record at offset ${offset} of the coordinator topic is ignored: ${why}`)
      return
    }
    if (record.kind === 'status' && record.incarnation === pod.incarnation)
      heartbeatBack(pod, this.#out, record, offset)
    if (record.kind === 'verify' && record.podId === pod.podId) readBack(pod, record.nonce)
    const at = timestamp === undefined ? {} : { at: timestamp }
    if (record.kind === 'command') pod.refusals.delete(record.issuer)
    pod.view.apply(record, offset, { now, fresh: pod.fresh.value, live: pod.joined, ...at })
  }

  #fact(fact: EngineFact | HaFact, now: number): void {
    const { pod } = this
    const out = this.#out
    switch (fact.type) {
      case 'standby':
        // Only where it was expected: an answer to an earlier command changes nothing.
        if (!['opening', 'stepping-down', 'handing-over'].includes(pod.engine) && !restartsAsStandby(pod)) break
        pod.engine = 'standby'
        pod.restarting = false
        pod.progress = undefined
        break
      case 'standby-progress':
        pod.progress = fact.progress
        break
      case 'disk-full':
        diskFull(pod, fact.sentence, now)
        break
      case 'stepped-down':
        steppedDown(pod)
        break
      case 'identity-taken':
        identityTaken(pod, out, fact.tokenEpoch, now)
        break
      case 'running':
        running(pod, out, now)
        break
      case 'restarting':
        pod.restarting = true
        if (pod.engine === 'standby') pod.readiness.reset()
        break
      case 'handed-over':
        handedOver(pod, fact.id, fact.commitId)
        break
      case 'verify-token':
        if (pod.run) verify(pod, out, { type: 'token', id: fact.id }, now)
        else out.engine({ type: 'ha-token', id: fact.id, held: false })
        break
      case 'committed':
        if (pod.run) pod.run.commitId = fact.commitId
        break
      case 'restarts-exhausted':
        if (fact.place) this.#faultSeen(fact.place)
        exhausted(pod, out, fact.place, now)
        break
      case 'fault-seen':
        this.#faultSeen(fact.place)
        break
      case 'failed':
        pod.engine = 'failed'
        pod.handOver = undefined
        pod.restarting = false
        break
      default:
      // The rest is for the lifecycle, not for the coordinator.
    }
  }

  /** What passes by itself shows in the age of the heartbeats alone; what is refused is told at once, and once. */
  #writeFailed({ code, message, refused }: Extract<HaEvent, { type: 'write-failed' }>): void {
    const { pod } = this
    if (pod.refused?.code === code) return
    if (!refused && pod.refused === undefined) return
    pod.refused = { code, message }
    this.#out.log('warn', refusalText(pod.settings.applicationId, pod.refused))
  }

  #faultSeen(place: Omit<Fault, 'count'>): void {
    const { pod } = this
    const known = pod.faults.find((fault) => samePlace(fault, place))
    const { topic, partition, offset } = place
    const others = pod.faults.filter((fault) => fault !== known)
    pod.faults = [...others, { topic, partition, offset, count: (known?.count ?? 0) + 1 }].slice(-mostFaults)
  }

  /** Everything has to be told once more; what ran goes on, under the same epoch. */
  #topicRecreated(tagEpoch: number): void {
    const { pod } = this
    this.#out.log('warn', 'the coordinator topic was made anew; this pod tells once more what it knows')
    pod.baseEpoch = Math.max(tagEpoch, pod.baseEpoch, pod.view.epoch)
    const old = pod.view
    pod.view = new LogView()
    pod.view.inherit(old)
    // Offsets begin anew: what they name is another command from now on.
    pod.pendingResults.clear()
    pod.claim = undefined
    pod.generation = null
    pod.logIsNew = true
    pod.joinedFresh = pod.fresh.value
    pod.statusAt = Number.NEGATIVE_INFINITY
    if (pod.run === undefined) return
    // Somebody has committed since under a later epoch: that claim is lost, and still it was the newer one.
    if (tagEpoch > pod.run.epoch) stepDown(pod, this.#out, `commits exist under token epoch ${tagEpoch}`)
    else pod.reclaiming = true
  }

  /** Two processes under one pod's name: the younger one stays. */
  #isReplaced(): boolean {
    const { pod } = this
    const own = pod.view.peers.get(pod.podId)
    if (pod.generation === null || own === undefined || own.status.incarnation === pod.incarnation) return false
    if (own.generation < pod.generation) return false
    const message =
      `another process runs under the pod id ${pod.podId} and was started later, so this one ends; ` +
      'give every pod an ha.pod-id of its own'
    stepDown(pod, this.#out, 'a younger process has this pod id')
    // Nothing is asked of the engine any more, and what it says is not heard: it ends with the process.
    pod.engine = 'failed'
    pod.ended = true
    this.#out.other({ type: 'fail', error: new EngineError('FENCED', message) })
    return true
  }
}

/** Its stores are closed, and followed anew with the next `standby`. */
function restartsAsStandby({ engine, restarting }: Pod): boolean {
  return engine === 'standby' && restarting
}

/** What holds of a pod after every step, whatever came. */
function checkPod({ run, claim, handOver, engine, reclaiming, pendingResults, view, baseEpoch }: Pod): void {
  assert(run === undefined || claim === undefined, 'a pod that runs claims nothing')
  assert(run === undefined || run.epoch > 0, 'a pod runs under a token epoch')
  assert(handOver === undefined || run !== undefined, 'a pod hands over what it has')
  assert(!reclaiming || run !== undefined, 'a pod reclaims the token under which it runs')
  assert(run !== undefined || !engagedStages.has(engine), `the engine is ${engine}, and its pod runs under no epoch`)
  assert(claim === undefined || claim.epoch > baseEpoch, 'a claim goes beyond all epochs of which commits exist')
  for (const offset of pendingResults.keys())
    assert(offset < view.position, 'a command has a result before it was read')
}

const engagedStages: ReadonlySet<string> = new Set(['promoting', 'taken', 'proceeding', 'running'])
