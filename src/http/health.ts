/**
 * Health indicators. A probe only reads what is known already: the engine's snapshot, the broker link's last exchange,
 * the cached answers of periodic checks. Nothing asks a broker or a server while a probe waits.
 */
import { type Clock, systemClock } from '../base/clock.ts'
import { maskValue } from '../config/mask.ts'
import { startedStates } from '../view/lifecycle.ts'
import type { EngineView, LifecycleState } from '../view/view.ts'
import { EngineError } from '../base/errors.ts'
import type { HaView } from './ha-seam.ts'
import type { LicenseSource } from './license-seam.ts'

export type Probe = 'live' | 'ready' | 'active'

export interface IndicatorResult {
  readonly up: boolean
  /** Flags and counts only, as JSON has them: probes may face the internet. */
  readonly details?: Readonly<Record<string, unknown>>
}

export interface IndicatorOptions {
  /** Lower-case letters, digits and dashes; not one of the built-in names. */
  readonly name: string
  /** `['ready']` (default), or with `live`, where a restart of the process can help. Readiness counts every indicator. */
  readonly probes?: readonly Probe[]
  /** An answer of any other kind counts as DOWN, as do a throw and a rejection. */
  readonly check: () => IndicatorResult | boolean | PromiseLike<IndicatorResult | boolean>
  /** Time between two checks, in milliseconds. Default 10,000. */
  readonly intervalMs?: number
  /** A check that takes longer counts as DOWN. Default 5,000 milliseconds. */
  readonly timeoutMs?: number
}

export interface ComponentReport {
  readonly name: string
  readonly status: 'UP' | 'DOWN'
  readonly details: Readonly<Record<string, unknown>>
}

export interface HealthReport {
  readonly status: 'UP' | 'DOWN'
  readonly components: readonly ComponentReport[]
  /** Only with DOWN: why, in one sentence. */
  readonly error?: string
}

export interface HealthSources {
  readonly view: EngineView
  readonly license: LicenseSource
  /**
   * For how long the engine's thread has given no sign of life, in time in which this process was let run. Left out where
   * nobody watches that: then all time counts.
   */
  readonly engineSilentMs?: () => number
  readonly ha?: HaView | null
  /** Whether a standby that could take over is ready to its probe. Default true. */
  readonly standbyIsReady?: boolean
  /** Given where `schema-registry.url` is set. */
  readonly schemaRegistry?: IndicatorOptions['check']
  readonly clock?: Clock
}

const readyStates: ReadonlySet<LifecycleState> = new Set(['RUNNING', 'DRAINING', 'PAUSED'])
/** States in which the engine thread is meant to tick. */
const tickingStates: ReadonlySet<LifecycleState> = new Set(['STARTING', ...startedStates])
/**
 * No sign of life from the engine thread for so long: the process is of no use any more. A process that was stopped, or got
 * no processor, is no better after a restart.
 */
const silenceLimitMs = 30_000
/** A broken link that comes back within this time does not take the process out of service. */
const brokerGraceMs = 10_000
const builtIn = new Set(['engine', 'broker', 'license', 'schema-registry'])

interface Judged extends ComponentReport {
  readonly reason?: string
}

interface Entry {
  readonly name: string
  readonly live: boolean
  readonly stop: () => void
  /** Undefined until the first check has answered. */
  result: IndicatorResult | undefined
}

export class HealthRegistry {
  readonly #sources: HealthSources
  readonly #clock: Clock
  readonly #custom = new Map<string, Entry>()
  readonly #schemaRegistry: Entry | undefined

  constructor(sources: HealthSources) {
    this.#sources = sources
    this.#clock = sources.clock ?? systemClock
    const check = sources.schemaRegistry
    this.#schemaRegistry = check === undefined ? undefined : startChecking({ name: 'schema-registry', check })
  }

  /**
   * Adds an indicator of the application's own. Its check runs at once and then periodically, never inside a probe.
   * Until the first answer it counts as DOWN for readiness and as UP for liveness.
   *
   * @returns a function that takes the indicator out again.
   * @throws EngineError CONFIG_INVALID where the name is malformed or taken.
   * @example health.register({ name: 'disk', check: () => freeBytes() > 1e9 })
   */
  register(options: IndicatorOptions): () => void {
    const { name } = options
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
      throw new EngineError(
        'CONFIG_INVALID',
        `the health indicator '${name}' needs a name of lower-case letters, digits and dashes`,
      )
    }
    if (builtIn.has(name) || this.#custom.has(name)) {
      throw new EngineError('CONFIG_INVALID', `a health indicator '${name}' exists already; choose another name`)
    }
    const entry = startChecking(options)
    this.#custom.set(name, entry)
    return () => {
      entry.stop()
      this.#custom.delete(name)
    }
  }

  report(probe: Probe): HealthReport {
    const components = probe === 'active' ? [this.#engineActive()] : probe === 'live' ? this.#live() : this.#ready()
    const down = components.filter((component) => component.status === 'DOWN')
    const shown = components.map(({ name, status, details }) => ({ name, status, details }))
    if (down.length === 0) return { status: 'UP', components: shown }
    const reasons = down.map((component) => component.reason ?? `${component.name} is DOWN`)
    const word = { live: 'not alive', ready: 'not ready', active: 'not active' }[probe]
    return { status: 'DOWN', components: shown, error: `${word}: ${reasons.join('; ')}` }
  }

  close(): void {
    this.#schemaRegistry?.stop()
    for (const entry of this.#custom.values()) entry.stop()
  }

  #live(): Judged[] {
    const custom = [...this.#custom.values()].filter((entry) => entry.live)
    return [this.#engineLive(), ...custom.map((entry) => judgeEntry(entry, 'live'))]
  }

  #ready(): Judged[] {
    const registry = this.#schemaRegistry
    return [
      this.#engineReady(),
      this.#broker(),
      this.#license(),
      ...(registry === undefined ? [] : [judgeEntry(registry, 'ready')]),
      ...[...this.#custom.values()].map((entry) => judgeEntry(entry, 'ready')),
    ]
  }

  #engineLive(): Judged {
    const { current, failure } = this.#sources.view.state()
    if (current === 'FAILED' && failure?.restartHelps === true) {
      return down(
        'engine',
        { state: current, code: failure.code },
        'engine is FAILED and a restart of the process can help',
      )
    }
    return this.#silence(current) ?? up('engine', { state: current })
  }

  #engineReady(): Judged {
    const { current, failure } = this.#sources.view.state()
    const silence = this.#silence(current)
    if (silence) return silence
    const full = this.#sources.view.diskFull()
    if (full !== null) return down('engine', { state: current, code: 'STORE_DISK_FULL' }, full)
    if (readyStates.has(current)) return this.#active(current)
    if (current === 'STANDBY') return this.#standby()
    const details = failure === null ? { state: current } : { state: current, code: failure.code }
    return down('engine', details, `engine is ${current}`)
  }

  /** Only the pod that processes, or would if nobody had paused it. */
  #engineActive(): Judged {
    const { current } = this.#sources.view.state()
    const { ha } = this.#sources
    const silence = this.#silence(current)
    if (silence) return silence
    if (!readyStates.has(current)) return down('engine', { state: current }, `engine is ${current}`)
    const haState = ha ? (ha.status()?.selfState ?? 'JOINING') : 'ACTIVE'
    return haState === 'ACTIVE'
      ? up('engine', { state: current })
      : down('engine', { state: current, haState }, `this pod is ${haState}`)
  }

  /**
   * A pod that is cut off from the coordinator processes nothing, and somebody else may by now. One that has lost the role
   * is to follow: its engine hears of that a little later, and then has its stores to open.
   */
  #active(state: LifecycleState): Judged {
    const status = this.#sources.ha?.status() ?? null
    if (status === null) return up('engine', { state })
    const { selfRole, selfState: haState } = status
    if (haState === 'ISOLATED')
      return down('engine', { state, haState }, 'this pod is cut off from the others (ISOLATED)')
    if (selfRole === 'ACTIVE') return up('engine', { state })
    return down('engine', { state, haState }, `this pod has lost the active role and is ${haState}`)
  }

  /** A standby that could take over is ready: rolling updates wait for it. */
  #standby(): Judged {
    const haState = this.#sources.ha?.status()?.selfState
    const details = { state: 'STANDBY', ...(haState === undefined ? {} : { haState }) }
    if (haState === 'READY_STANDBY' && this.#sources.standbyIsReady !== false) return up('engine', details)
    return down('engine', details, `engine is STANDBY${haState === undefined ? '' : ` (${haState})`}`)
  }

  #silence(state: LifecycleState): Judged | undefined {
    const { engineSilentMs, view } = this.#sources
    const silentForMs = tickingStates.has(state) ? (engineSilentMs?.() ?? view.engineSilenceMs()) : 0
    if (silentForMs < silenceLimitMs) return undefined
    const seconds = Math.floor(silentForMs / 1000)
    return down(
      'engine',
      { state, silentForMs: Math.round(silentForMs) },
      `engine thread has been silent for ${seconds} s`,
    )
  }

  #broker(): Judged {
    const { connected, sinceMs, trouble } = this.#sources.view.broker()
    if (trouble) {
      const code = trouble.isWaiting ? 'BROKER_DISK_FULL' : 'BROKER_STOPPED'
      return down('broker', { connected, code }, asClause(trouble.sentence))
    }
    if (connected) return up('broker', { connected })
    const downForMs = Math.max(0, Math.round(this.#clock.now() - sinceMs))
    if (downForMs < brokerGraceMs) return up('broker', { connected, downForMs })
    return down('broker', { connected, downForMs }, `broker has been unreachable for ${Math.floor(downForMs / 1000)} s`)
  }

  #license(): Judged {
    const { up: isUp, details, reason } = this.#sources.license.readiness()
    if (isUp) return up('license', details)
    return down('license', details, asClause(reason ?? `license is ${String(details.status ?? 'refused')}`))
  }
}

/** One sentence among others: without its capital and its full stop. */
function asClause(sentence: string): string {
  return sentence.replace(/^The /, 'the ').replace(/\.$/, '')
}

function up(name: string, details: Readonly<Record<string, unknown>>): Judged {
  return { name, status: 'UP', details }
}

function down(name: string, details: Readonly<Record<string, unknown>>, reason: string): Judged {
  return { name, status: 'DOWN', details, reason }
}

function judgeEntry(entry: Entry, probe: Probe): Judged {
  const { name, result } = entry
  if (result === undefined) {
    const details = { checked: false }
    return probe === 'live' ? up(name, details) : down(name, details, `${name} has not been checked yet`)
  }
  const details = result.details ?? {}
  return result.up ? up(name, details) : down(name, details, `${name} is DOWN`)
}

/** Not every promise is one of this thread's own `Promise`. */
function isPromiseLike(answer: unknown): answer is PromiseLike<unknown> {
  return typeof (answer as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function'
}

/** What a check answered with. Types hold nobody who writes JavaScript: anything may come. */
function resultOf(answer: unknown): IndicatorResult {
  if (typeof answer === 'boolean') return { up: answer, details: {} }
  const { up: isUp, details } = (answer ?? {}) as Partial<IndicatorResult>
  if (typeof isUp !== 'boolean') {
    return { up: false, details: { error: 'check has to answer with true, false or { up, details }' } }
  }
  return { up: isUp, details: shownDetails(details ?? {}) }
}

/** Details that JSON cannot have (big integers, cycles) would take the whole report with them. */
function shownDetails(details: unknown): Readonly<Record<string, unknown>> {
  try {
    const shown: unknown = JSON.parse(JSON.stringify(maskValue('details', details)))
    if (typeof shown === 'object' && shown !== null && !Array.isArray(shown)) return shown as Record<string, unknown>
  } catch {
    // Told below, like details of another shape.
  }
  return { error: 'details have to be an object that JSON can show' }
}

/** Runs a check at once and then periodically; a check still under way is not started a second time. */
function startChecking(options: IndicatorOptions): Entry {
  const { name, check, intervalMs = 10_000, timeoutMs = 5000 } = options
  let running = false
  const settle = (answer: unknown): void => {
    entry.result = resultOf(answer)
  }
  const fail = (error: string): void => {
    // What the check threw may name hosts or hold secrets; probes may face the internet.
    entry.result = { up: false, details: { error } }
  }
  const run = (): void => {
    if (running) return
    running = true
    const overdue = setTimeout(() => fail('check timed out'), timeoutMs)
    overdue.unref()
    const done = (): void => {
      running = false
      clearTimeout(overdue)
    }
    try {
      const answer: unknown = check()
      if (isPromiseLike(answer)) {
        // Nothing is left to reject: a rejection that nobody handles ends the process.
        void Promise.resolve(answer)
          .then(settle)
          .catch(() => fail('check failed'))
          .finally(done)
        return
      }
      settle(answer)
    } catch {
      fail('check failed')
    }
    done()
  }
  const timer = setInterval(run, intervalMs)
  timer.unref()
  const entry: Entry = {
    name,
    live: options.probes?.includes('live') === true,
    stop: () => clearInterval(timer),
    result: undefined,
  }
  run()
  return entry
}
