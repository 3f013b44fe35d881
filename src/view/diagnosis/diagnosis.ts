/** Looks at the engine every now and then, and has the verdict ready for whoever asks. */
import type { Clock } from '../../base/clock.ts'
import { WallClockOffset } from '../../time/watermark-report.ts'
import { verdictOf, diagnose } from './diagnose.ts'
import type { Facts } from './facts.ts'
import type { Finding, Verdict } from './finding.ts'
import { Flow } from './flow.ts'
import type { SeenFunction } from './lane-look.ts'
import { Lateness } from './lateness.ts'
import { type Around, type KeptFromRunning, Look } from './look.ts'
import { slowForMs } from './rows/lanes.ts'
import { lasting } from './words.ts'

export interface DiagnosisOptions extends Around {
  readonly clock: Clock
  readonly log: (level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void
  /** What the lanes' threads are in, by name. Asked only where a lane takes long, and never waited for. */
  readonly functions?: () => Promise<ReadonlyMap<string, SeenFunction>>
}

export const lookEveryMs = 250
const flowSamples = 40
/** A lane whose step takes so long is looked at from outside, and again after the pause. */
const suspiciousMs = 2000
const functionsPauseMs = 2500
const slowLaneRate = 50

export class Diagnosis {
  readonly #o: DiagnosisOptions
  #look: Look
  readonly #flow = new Flow(flowSamples)
  readonly #timer: NodeJS.Timeout
  #functions: ReadonlyMap<string, SeenFunction> = new Map()
  #askedAt = Number.NEGATIVE_INFINITY
  #asking = false
  readonly #lateness = new Lateness(lookEveryMs, flowSamples)
  /** Findings by code and place, with the time at which each was first told to have begun. */
  #known = new Map<string, Finding>()
  #verdict: Verdict
  readonly #wall = new WallClockOffset()

  constructor(options: DiagnosisOptions) {
    this.#o = options
    this.#look = new Look(options)
    this.#verdict = this.#judge(true)
    this.#timer = setInterval(() => this.#judge(true), lookEveryMs)
    this.#timer.unref()
  }

  /** What is so now. */
  verdict(): Verdict {
    return this.#judge(false)
  }

  /** As of the last look. */
  get last(): Verdict {
    return this.#verdict
  }

  /** For how long the engine's thread has given no sign of life, in time in which this process was let run. */
  engineSilentMs(): number {
    return Math.max(0, this.#o.view.engineSilenceMs() - this.#kept().missedMs)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** How much this thread, and so all of the process, was kept from running. */
  #kept(): KeptFromRunning {
    const now = this.#o.clock.monotonic()
    const missedMs = this.#lateness.missedMs(now - this.#o.view.engineSilenceMs(), now)
    const wokeAt = this.#lateness.wokeAt(now)
    const wokeMs = wokeAt === undefined ? undefined : this.#o.clock.now() - (now - wokeAt)
    return { missedMs, lateMs: this.#lateness.meanMs, wokeMs }
  }

  #judge(sampled: boolean): Verdict {
    const { clock } = this.#o
    const now = clock.now()
    const passed = clock.monotonic()
    if (this.#wall.observe(passed, now)) this.#beginAnew()
    // A look that comes late tells that this thread waited for a processor, as all of the process do.
    const stoodStillMs = sampled ? this.#lateness.look(passed) : 0
    if (stoodStillMs > 0) {
      const sentence = `This process was not let run for ${lasting(stoodStillMs)}: it, or its machine, stood still.`
      this.#o.log('warn', sentence, {})
    }
    const facts = this.#look.take(now, this.#functions, this.#kept())
    if (sampled) {
      this.#flow.sample(facts, this.#o.view.counters(), passed)
      this.#askFunctions(facts, now)
    }
    const findings = this.#keepSince(diagnose(now, { ...facts, slowBefore: this.#slowLanes() }), now)
    this.#verdict = { ...verdictOf(facts, findings, this.#flow.stages(findings), now), times: this.#flow.times(passed) }
    return this.#verdict
  }

  #slowLanes(): ReadonlySet<string> {
    const slow = [...this.#known.values()].filter(({ code }) => code === 'LANE_SLOW')
    return new Set(slow.flatMap(({ place: { lane } }) => lane ?? []))
  }

  /** Instants that were remembered are those of the wall clock as it was: they tell no ages any more. */
  #beginAnew(): void {
    this.#look = new Look(this.#o)
    this.#known = new Map()
    this.#askedAt = Number.NEGATIVE_INFINITY
  }

  /** The begin of a cause stays what it was; what comes and goes is logged once. */
  #keepSince(found: readonly Finding[], now: number): Finding[] {
    const known = new Map<string, Finding>()
    const findings = found.map((finding) => {
      const name = nameOf(finding)
      const before = this.#known.get(name)
      const kept = before === undefined ? finding : { ...finding, sinceMs: Math.min(before.sinceMs, finding.sinceMs) }
      if (!known.has(name)) known.set(name, kept)
      return kept
    })
    for (const [name, finding] of known) if (!this.#known.has(name)) this.#came(finding)
    for (const [name, finding] of this.#known) if (!known.has(name)) this.#went(finding, now)
    this.#known = known
    return findings
  }

  #came({ code, severity, sentence, place }: Finding): void {
    const level = severity === 'STANDING' || severity === 'FAILED' ? 'warn' : 'info'
    this.#o.log(level, `${code}: ${sentence}`, { code, ...place })
  }

  #went({ code, sinceMs, place }: Finding, now: number): void {
    this.#o.log('info', `${code} is over after ${lasting(now - sinceMs)}`, { code, ...place })
  }

  #askFunctions({ lanes }: Facts, now: number): void {
    const { functions } = this.#o
    if (functions === undefined || this.#asking || now - this.#askedAt < functionsPauseMs) return
    const suspicious = lanes.some(({ stepSinceMs, stillSinceMs, busySinceMs, rate }) => {
      if (stepSinceMs === null) return stillSinceMs !== undefined && now - stillSinceMs >= suspiciousMs
      const slow = busySinceMs !== null && now - busySinceMs > slowForMs / 2 && rate !== null && rate <= slowLaneRate
      return slow || now - stepSinceMs >= suspiciousMs
    })
    if (!suspicious) return
    const previouslyAt = this.#askedAt
    this.#asking = true
    this.#askedAt = now
    functions()
      .then((seen) => {
        this.#functions = dated(kept(seen, this.#functions, lanes, previouslyAt), this.#functions, now)
      })
      .catch(() => {
        // The node is known all the same.
      })
      .finally(() => {
        this.#asking = false
      })
  }
}

/** A thread that had no time to tell where it is, still is where it was, if it is at the same step. */
function kept(
  seen: ReadonlyMap<string, SeenFunction>,
  before: ReadonlyMap<string, SeenFunction>,
  lanes: Facts['lanes'],
  beforeMs: number,
): ReadonlyMap<string, SeenFunction> {
  const isSameStep = (name: string): boolean => {
    const since = lanes.find(({ lane }) => lane === name)?.stepSinceMs ?? null
    return since !== null && since < beforeMs
  }
  return new Map(
    [...seen].map(([name, now]) => {
      const earlier = before.get(name)
      return [name, now.function === null && earlier !== undefined && isSameStep(name) ? earlier : now]
    }),
  )
}

/** Since when each thread has been found where it is, one time after the other. */
function dated(
  seen: ReadonlyMap<string, SeenFunction>,
  before: ReadonlyMap<string, SeenFunction>,
  now: number,
): ReadonlyMap<string, SeenFunction> {
  const dateOf = (name: string, each: SeenFunction): NonNullable<SeenFunction['found']> => {
    const { function: earlier, found } = before.get(name) ?? {}
    return { firstMs: earlier === each.function ? (found?.firstMs ?? now) : now, lastMs: now }
  }
  return new Map([...seen].map(([name, each]) => [name, { ...each, found: dateOf(name, each) }]))
}

function nameOf({ code, place }: Finding): string {
  const { lane, topic, partition, keyHash, store, group } = place
  return JSON.stringify([code, lane, topic, partition, keyHash, store, group])
}
