import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import type { Config } from '../config/config.ts'
import { LicenseCache } from './cache.ts'
import type { License, LicenseLog } from './contract.ts'
import type { Fetch } from './fetch-text.ts'
import { type KeyedLicenseOptions, KeyedLicense } from './keyed-license.ts'
import { systemTimers, type Timers } from './timers.ts'
import { LicenseValidator } from './validator.ts'
import { type LicenseSnapshot, readinessOf, stateOf } from './view.ts'

export type { License, LicenseLog } from './contract.ts'
export type { LicenseReadiness, LicenseState } from './view.ts'

export interface LicenseOptions {
  readonly config: Config
  readonly clock: Clock
  /** For the jitter of the heartbeats. */
  readonly random: Random
  readonly log: LicenseLog
  /** Default: the platform's. */
  readonly timers?: Timers
  /** Default: the platform's. */
  readonly fetch?: Fetch
  /** Makes what an answer must repeat to count as fresh. Default: a random UUID. */
  readonly nonce?: () => string
}

/**
 * The license component. Without `license.key` it is `NO_KEY` for good and talks to nobody.
 *
 * @example
 * const license = createLicense({ config, clock: systemClock, random: new Random(1), log })
 * license.start()
 * license.state().status // 'PENDING', and five minutes later 'VALID'
 * await license.stop()
 */
export function createLicense(options: LicenseOptions): License {
  const key = options.config.get('license.key')?.trim()
  return key === undefined || key === '' ? noKeyLicense(options.clock) : keyedLicense(options, key)
}

function keyedLicense(options: LicenseOptions, key: string): License {
  const { config } = options
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
  const cacheFile = config.get('license.cache-file') ?? join(config.get('engine.state.dir'), 'license.json')
  const cache = new LicenseCache(cacheFile, key)
  const cached = cache.read()
  const machineId =
    config.get('license.machine-id') ??
    (cached.kind === 'ok' ? cached.content.machineId : cached.kind === 'other key' ? cached.machineId : randomUUID())
  const validator = new LicenseValidator({
    key,
    machineId,
    audience: config.get('license.audience'),
    issuer: config.get('license.issuer'),
    publicKeys: config.get('license.public-keys'),
    serverUrl: config.get('license.server-url'),
    fetch,
    nonce: options.nonce ?? randomUUID,
  })
  const inner: KeyedLicenseOptions = {
    clock: options.clock,
    random: options.random,
    timers: options.timers ?? systemTimers,
    log: (line) => options.log({ ...line, message: config.maskText(line.message) }),
    activationDelayMs: config.get('license.activation-delay'),
    heartbeatIntervalMs: config.get('license.heartbeat-interval'),
    gracePeriodMs: config.get('license.grace-period'),
    machineId,
    validator,
    cache,
    cached,
  }
  return new KeyedLicense(inner)
}

/** The license where there is no key: ready, and silent. */
export function noKeyLicense(clock: Clock): License {
  const snapshot = (): LicenseSnapshot => ({
    status: 'NO_KEY',
    reason: 'no license key is set',
    nowMs: clock.now(),
    licenseId: null,
    tier: null,
    customerName: null,
    expiresAtMs: null,
    machinesUsed: 0,
    machinesAllowed: 0,
    lastValidatedAtMs: null,
    cachedJwtExpiresAtMs: null,
    heartbeatLastSuccessAtMs: null,
    consecutiveFailures: 0,
    graceEndsAtMs: 0,
    online: false,
  })
  return {
    state: () => stateOf(snapshot()),
    readiness: () => readinessOf(snapshot()),
    start: () => undefined,
    stop: () => Promise.resolve(),
  }
}
