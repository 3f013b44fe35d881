import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { messageOf } from '../base/errors.ts'
import type { CacheRead, LicenseCache } from './cache.ts'
import type { License, LicenseLog } from './contract.ts'
import { EndWarnings } from './end-warnings.ts'
import { validationDelayMs } from './pace.ts'
import {
  conditionOf,
  graceEndsAtMs,
  type LicenseEvent,
  type LicenseFacts,
  type LicenseStatus,
  nextStatus,
} from './status.ts'
import type { Timers } from './timers.ts'
import type { LicenseClaims } from './token.ts'
import { TrustedClock } from './trusted-clock.ts'
import type { LicenseValidator, SignedLease, Validation } from './validator.ts'
import { type LicenseReadiness, type LicenseSnapshot, type LicenseState, readinessOf, stateOf } from './view.ts'

export interface KeyedLicenseOptions {
  readonly clock: Clock
  readonly random: Random
  readonly timers: Timers
  readonly log: LicenseLog
  readonly activationDelayMs: number
  readonly heartbeatIntervalMs: number
  readonly gracePeriodMs: number
  readonly machineId: string
  readonly validator: LicenseValidator
  readonly cache: LicenseCache
  readonly cached: CacheRead
}

const lookEveryMs = 60_000
const deactivationTimeoutMs = 2000
/** A license with a key: runs the validations and keeps what they found out. */
export class KeyedLicense implements License {
  readonly #options: KeyedLicenseOptions
  readonly #time: TrustedClock
  readonly #stopping = new AbortController()
  #status: LicenseStatus = 'PENDING'
  #reason = 'not validated yet'
  #claims: LicenseClaims | null = null
  /** The newest genuine answer, good or bad. */
  #lease: SignedLease | null = null
  #failures = 0
  #failingSinceMs: number | null = null
  #lastValidatedAtMs: number | null = null
  #heartbeatLastSuccessAtMs: number | null = null
  /** Whether the cached answer still has to be verified. */
  #cacheWaits = true
  #tampered = false
  /** Whether the server counts this machine because of this run. */
  #seated = false
  readonly #endWarnings = new EndWarnings()
  #setBackSeen = false
  #cacheComplained = false
  #cancelValidation: () => void = () => undefined
  #cancelLook: () => void = () => undefined

  constructor(options: KeyedLicenseOptions) {
    this.#options = options
    this.#time = new TrustedClock(options.clock)
    if (options.cached.kind === 'ok') {
      this.#time.knowInstant(options.cached.content.seenAtMs)
      this.#failingSinceMs = options.cached.content.failingSinceMs
    }
    if (options.cached.kind === 'tampered') this.#noticeTampering()
  }

  start(): void {
    this.#look()
    this.#cancelValidation = this.#options.timers.after(this.#options.activationDelayMs, () => this.#run())
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort()
    this.#cancelValidation()
    this.#cancelLook()
    if (this.#seated) await this.#options.validator.deactivate(AbortSignal.timeout(deactivationTimeoutMs))
  }

  state(): LicenseState {
    return stateOf(this.#snapshot())
  }

  readiness(): LicenseReadiness {
    return readinessOf(this.#snapshot())
  }

  #snapshot(): LicenseSnapshot {
    this.#step('time passed')
    const facts = this.#facts()
    const counts = this.#claims === null ? undefined : this.#lease?.claims
    return {
      status: this.#status,
      reason: this.#reason,
      nowMs: facts.nowMs,
      licenseId: this.#claims?.licenseId ?? null,
      tier: this.#claims?.tier ?? null,
      customerName: this.#claims?.customerName ?? null,
      expiresAtMs: facts.expiresAtMs,
      // Offline nobody counts; what is certain is that this machine uses the license.
      machinesUsed: counts?.machinesUsed ?? (this.#claims !== null && !this.#options.validator.online ? 1 : 0),
      machinesAllowed: counts?.machinesAllowed ?? this.#claims?.machinesAllowed ?? 0,
      lastValidatedAtMs: this.#lastValidatedAtMs,
      cachedJwtExpiresAtMs: counts?.expiresAtMs ?? null,
      heartbeatLastSuccessAtMs: this.#heartbeatLastSuccessAtMs,
      consecutiveFailures: this.#failures,
      graceEndsAtMs: graceEndsAtMs(facts),
      online: this.#options.validator.online,
    }
  }

  #facts(): LicenseFacts {
    const lease = this.#lease?.claims
    const coveredUntilMs = lease?.status === 'ACTIVE' ? lease.expiresAtMs : null
    return {
      nowMs: this.#time.now(),
      // The server may have extended or shortened a license since its key was made.
      expiresAtMs: this.#claims === null ? null : (lease?.licenseExpiresAtMs ?? this.#claims.expiresAtMs),
      coveredUntilMs,
      failingSinceMs: this.#failingSinceMs,
      gracePeriodMs: this.#options.gracePeriodMs,
    }
  }

  /** The server's last good answer still counts. */
  #isCovered(): boolean {
    const { nowMs, coveredUntilMs } = this.#facts()
    return coveredUntilMs !== null && nowMs < coveredUntilMs
  }

  /** The one place where the status changes. */
  #step(event: LicenseEvent, reason?: string): void {
    const from = this.#status
    const facts = this.#facts()
    const to = nextStatus(from, event, facts)
    if (reason !== undefined || to !== from) this.#reason = reason ?? clockReasons[conditionOf(facts)]
    if (to === from) return
    this.#status = to
    const level = to === 'VALID' ? 'info' : to === 'GRACE_PERIOD' ? 'warn' : 'error'
    this.#log(level, `The license is ${to} (was ${from}): ${this.#reason}.`)
  }

  #run(): void {
    const next = (retryAfterMs: number | undefined): void => {
      if (this.#stopping.signal.aborted) return
      this.#save()
      this.#cancelValidation = this.#options.timers.after(this.#delayMs(retryAfterMs), () => this.#run())
    }
    this.#validateOnce().then(next, (error: unknown) => {
      // Whatever went wrong, the next validation must still come.
      if (!this.#stopping.signal.aborted) this.#fail(messageOf(error), this.#time.now())
      next(undefined)
    })
  }

  /** One validation and what follows from it. The result is how long the server asks to wait, if it does. */
  async #validateOnce(): Promise<number | undefined> {
    const { signal } = this.#stopping
    await this.#openCache(signal)
    const action = this.#seated ? 'heartbeat' : 'activate'
    const validation = await this.#options.validator.validate(action, this.#time.now(), signal)
    if (signal.aborted) return undefined
    this.#digest(validation)
    return validation.kind === 'failed' ? validation.retryAfterMs : undefined
  }

  #digest(validation: Validation): void {
    if (validation.kind === 'failed') {
      if (validation.claims !== null) this.#claims = validation.claims
      this.#fail(validation.reason, this.#time.now())
      return
    }
    // What anybody may have said does not take back what the server has signed for.
    if (validation.kind === 'refused' && validation.unproven && this.#isCovered()) {
      this.#fail(validation.reason, this.#time.now())
      return
    }
    this.#claims = validation.claims
    if (validation.lease !== null) {
      this.#lease = validation.lease
      this.#time.setInstant(validation.lease.claims.issuedAtMs)
    }
    if (validation.kind === 'refused') {
      this.#failures++
      if (validation.lease !== null) this.#seated = false
      this.#step('refused', validation.reason)
      return
    }
    this.#failures = 0
    this.#failingSinceMs = null
    this.#tampered = false
    this.#seated = validation.kind === 'accepted' && validation.lease !== null
    this.#lastValidatedAtMs = this.#time.now()
    if (validation.lease !== null) this.#heartbeatLastSuccessAtMs = this.#lastValidatedAtMs
    if (validation.kind === 'accepted') this.#step('accepted')
    else this.#step('revoked', 'the license server says that it was revoked')
  }

  /** A validation could not be made. Straight after the start, what was remembered says how things stand. */
  #fail(reason: string, nowMs: number): void {
    this.#failures++
    this.#failingSinceMs ??= nowMs
    this.#log('warn', `The license could not be validated, ${this.#failures} in a row: ${reason}.`)
    const last = this.#status === 'PENDING' ? this.#lease?.claims.status : undefined
    if (this.#status === 'PENDING' && this.#tampered) {
      this.#step('refused', 'what was remembered of it was changed, and it cannot be validated at the moment')
    } else if (last === 'REVOKED') this.#step('revoked', 'the license server says that it was revoked')
    else if (last !== undefined && last !== 'ACTIVE') this.#step('refused', 'the license server refused it')
    else this.#step('failed')
  }

  async #openCache(signal: AbortSignal): Promise<void> {
    if (!this.#cacheWaits) return
    const { cached, machineId, validator } = this.#options
    const isOurs = cached.kind === 'ok' && cached.content.machineId === machineId
    const token = isOurs ? cached.content.lease : null
    if (token === null || !validator.online) {
      this.#cacheWaits = false
      return
    }
    const opened = await validator.openCached(token, signal)
    if (opened === 'keys unavailable') return
    this.#cacheWaits = false
    if (opened === undefined) this.#noticeTampering()
    else {
      this.#lease = opened
      this.#time.knowInstant(opened.claims.issuedAtMs)
    }
  }

  #save(): void {
    const trouble = this.#options.cache.write({
      machineId: this.#options.machineId,
      // Before the cached answer could be verified it must not be lost.
      lease: this.#lease?.token ?? this.#unopenedLease(),
      failingSinceMs: this.#failingSinceMs,
      seenAtMs: Math.floor(this.#time.leastNow()),
    })
    if (trouble !== undefined && !this.#cacheComplained) {
      this.#cacheComplained = true
      this.#log('warn', `What is known of the license cannot be remembered across restarts: ${trouble}.`)
    }
  }

  #unopenedLease(): string | null {
    const { cached } = this.#options
    return this.#cacheWaits && cached.kind === 'ok' ? cached.content.lease : null
  }

  #noticeTampering(): void {
    this.#tampered = true
    this.#log('warn', 'What was remembered of the license was changed by somebody else and does not count.')
  }

  #delayMs(retryAfterMs: number | undefined): number {
    const { heartbeatIntervalMs, random } = this.#options
    return validationDelayMs(heartbeatIntervalMs, this.#failures, retryAfterMs, random)
  }

  /** What only the passing of time brings about, also while nobody asks. */
  #look(): void {
    const behindMs = this.#time.setBackMs()
    if (behindMs > 0 && !this.#setBackSeen) this.#log('warn', this.#behind(behindMs))
    this.#setBackSeen = behindMs > 0
    this.#step('time passed')
    this.#warnOfEnd()
    this.#cancelLook = this.#options.timers.after(lookEveryMs, () => this.#look())
  }

  /** The clock may have run ahead when this process, or one before it, began: then nothing but this brings it back. */
  #behind(behindMs: number): string {
    const { validator, cache } = this.#options
    const later = new Date(this.#time.now()).toISOString()
    const way = validator.online
      ? 'the next answer of the license server corrects it'
      : `stop this process, delete ${cache.path}, and start it again`
    return (
      `The clock of this machine is ${Math.round(behindMs / 1000)} s behind; the license goes by the later time, ${later}. ` +
      `If it has never been so late: ${way}.`
    )
  }

  #warnOfEnd(): void {
    const { nowMs, expiresAtMs } = this.#facts()
    if (expiresAtMs === null || this.#status === 'PENDING') return
    const warning = this.#endWarnings.at(nowMs, expiresAtMs)
    if (warning !== undefined) this.#log('warn', warning)
  }

  #log(level: 'info' | 'warn' | 'error', message: string): void {
    this.#options.log({ level, component: 'license', message })
  }
}

const clockReasons = {
  ended: 'it has expired',
  covered: 'it was validated',
  'in grace': 'validations fail and the last good answer is used up',
  'grace over': 'validations fail and the grace period is over',
} as const
