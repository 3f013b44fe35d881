/** The diagnosis of a running application, with all that it looks at. */
import { hostname } from 'node:os'
import { relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../base/clock.ts'
import type { Config } from '../../config/config.ts'
import type { License } from '../../license/license.ts'
import { licenseNow } from '../../http/why-seam.ts'
import { stateFolder } from '../../state/backends.ts'
import { Diagnosis } from '../../view/diagnosis/diagnosis.ts'
import type { EarlierFailure, Facts, SettingsFacts } from '../../view/diagnosis/facts.ts'
import type { SeenFunction } from '../../view/diagnosis/lane-look.ts'
import { endedFrame } from '../threads/thread-dump.ts'
import type { ThreadsSnapshot } from '../../view/view.ts'
import type { LogLine } from '../contract.ts'
import type { EngineHost } from '../engine/engine-host.ts'
import { type HaLink, isHotStandby, stateFolderOf } from '../ha.ts'
import type { SchemaService } from '../schemas/schema-service.ts'
import { policiesOf } from '../settings.ts'
import type { Identity } from './identity.ts'
import { TransactionHolders } from './transaction-holders.ts'

export interface DiagnosisParts {
  readonly config: Config
  readonly host: EngineHost
  readonly license: License
  /** Null where `ha.mode` is `off`. */
  readonly ha: HaLink | null
  readonly schemas: Pick<SchemaService, 'waits'>
  readonly earlier: () => readonly EarlierFailure[]
  readonly identity: Identity | null
  /** Null where the engine does not write in transactions. */
  readonly transactionalId: string | null
  readonly log: (line: LogLine) => void
}

export function startDiagnosis(parts: DiagnosisParts): Diagnosis {
  const { config, host, license, ha, schemas, earlier, identity, transactionalId, log } = parts
  const holders = new TransactionHolders(host.askedBroker, systemClock)
  return new Diagnosis({
    view: host,
    license: () => licenseNow(license),
    ha: () => haFacts(ha),
    schemas: () => schemas.waits,
    transactionalId,
    commitIntervalMs: config.get('commit-barrier.interval-ms'),
    process: processName(config, identity?.name ?? null),
    settings: settingsOf(config, host.applicationId),
    earlier,
    holder: (at, sinceMs) => holders.of(at, sinceMs),
    identity: () => identity?.facts() ?? null,
    mask: (text) => config.maskText(text),
    clock: systemClock,
    log: (level, message, fields) => log({ level, component: 'diagnosis', message, fields }),
    functions: async () => functionsOf(await host.threads({ depth: 100 })),
  })
}

function processName(config: Config, identity: string | null): string {
  const host = hostname()
  const pod = isHotStandby(config) ? (config.get('ha.pod-id') ?? host) : null
  const name = pod === null ? (identity === null ? '' : ` (identity ${identity})`) : ` (pod ${pod})`
  return `process ${process.pid} on ${host}${name}`
}

function settingsOf(config: Config, applicationId: string): SettingsFacts {
  return {
    ...policiesOf(config, applicationId),
    laneTimeoutMs: config.get('commit-barrier.timeout-ms'),
    fetchMaxWaitMs: config.get('consumer.fetch.max.wait.ms'),
    sessionTimeoutMs: config.get('consumer.session.timeout.ms'),
    stateStore: config.get('engine.state.store'),
    stateDir: config.get('engine.state.dir'),
    stateFolder: stateFolder(stateFolderOf(config), applicationId),
    failoverTimeoutMs: config.get('ha.failover-timeout'),
    handoffTimeoutMs: config.get('ha.handoff-timeout'),
    shutdownTimeoutMs: config.get('runtime.shutdown.timeout'),
    instanceId: config.get('engine.instance-id'),
  }
}

function haFacts(ha: HaLink | null): Facts['ha'] {
  const status = ha?.status() ?? null
  if (status === null) return null
  const active = status.peers.find(({ role }) => role === 'ACTIVE')
  const promoting = status.peers.find(({ podId, state }) => state === 'PROMOTING' && podId === status.tokenHolder)
  const refused = status.peers.filter(({ commandsRefused }) => commandsRefused > 0).map(({ podId }) => podId)
  return {
    podId: status.selfPodId,
    role: status.selfRole,
    state: status.selfState,
    notReady: status.notReady,
    failoverPaused: status.failoverPaused ? pauseOf(ha) : null,
    ...(promoting !== undefined && {
      promoting: { podId: promoting.podId, diskFull: promoting.diskFull, heardMs: Math.max(0, promoting.freshnessMs) },
    }),
    ...(refused.length > 0 && { refused: { podIds: refused } }),
    others: status.peers.map(({ podId, state }) => ({ podId, state })),
    active:
      active === undefined
        ? null
        : { podId: active.podId, state: active.state, heardMs: Math.max(0, active.freshnessMs) },
  }
}

/** What is known of the command that paused failover. */
function pauseOf(ha: HaLink | null): NonNullable<Facts['ha']>['failoverPaused'] {
  const said = ha?.history()?.events.find(({ event }) => event === 'PAUSE')
  return { pod: said?.issuer ?? null, from: said?.from ?? null, atMs: said?.at == null ? null : Date.parse(said.at) }
}

/** Where the engine's own code lies, as frames tell it: relative to the working directory. */
const ownFolder = relativeToHere(fileURLToPath(new URL('../..', import.meta.url)))

function relativeToHere(folder: string): string {
  const path = relative(process.cwd(), folder)
  return `${path.startsWith('..') ? folder : path}${sep}`
}

/** The innermost function of each lane that is neither the engine's own nor the platform's. */
export function functionsOf({ engineThreads }: ThreadsSnapshot): ReadonlyMap<string, SeenFunction> {
  const lanes = engineThreads.filter(({ role }) => role === 'lane')
  return new Map(
    lanes.map(({ name, state, stack }) => {
      const inside = stack.find(isOfApplication) ?? null
      // A thread that is asleep within a function waits for something else; one that tells no stack at all is in native code.
      const blocked = state === 'BLOCKED' || (state === 'WAITING' && inside !== null)
      return [name, { function: inside, blocked }]
    }),
  )
}

function isOfApplication(frame: string): boolean {
  if (frame === endedFrame) return false
  const file = frame.slice(frame.lastIndexOf('(') + 1)
  return !/^(<eval>|node:|:)/.test(file) && !file.startsWith(ownFolder)
}
