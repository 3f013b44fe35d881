import { after } from 'node:test'
import { defaultHttpConfig, type HttpConfig } from '../../../src/http/http-config.ts'
import { ask } from './client.ts'
import { type Held, holdCreated, holdRestarting, holdRestoring, holdStopped, words } from './held-states.ts'
import { isLicensedStatus, startLicensed } from './licensed.ts'
import { endLeftThreads, type Live, startLive } from './live.ts'
import type { Instance, Situation, Subject } from './subject.ts'

const configKeys: Partial<Record<keyof HttpConfig, string>> = {
  metricsEnabled: 'runtime.metrics.enabled',
  configEndpointEnabled: 'runtime.endpoints.config.enabled',
  debugEnabled: 'runtime.http.debug.enabled',
}

/** Long enough that whatever waits for this record waits until the end. */
const never = 3_600_000

type Bring<T extends Held> = (config: Readonly<Record<string, unknown>>) => Promise<T>
interface Way<T extends Held> {
  readonly bring: Bring<T>
  /** Brings it back into the state after a row. */
  readonly restore?: (held: T) => Promise<void>
}
const way = <T extends Held>(bring: Bring<T>, restore?: (held: T) => Promise<void>): Way<Held> => ({
  bring,
  ...(restore && { restore: restore as (held: Held) => Promise<void> }),
})

async function running(config: Readonly<Record<string, unknown>>): Promise<Live> {
  const live = await startLive({ app: 'conformance-app', config })
  await live.untilState('RUNNING')
  await words(live)
  await live.until('the last commit is shown', async () => (await live.get('/consumer')).lastCommitMs !== null)
  return live
}

async function withSlowRecord(config: Readonly<Record<string, unknown>>): Promise<Live> {
  const live = await running(config)
  await live.feed('words', [{ key: 'slow', value: { text: 'slow', slowMs: never }, timestamp: 1e12 + 10 }])
  await live.until('the slow record is being processed', async () => {
    const { body } = await live.ask({ path: '/metrics' })
    return /^engine_lane_async_in_flight_records\{lane="lane-\d"\} 1$/m.test(body)
  })
  return live
}

const post = async (live: Live, path: string): Promise<unknown> => live.ask({ method: 'POST', path })

/** How an engine is brought into each state, and how it is brought back into it after a row. */
const ways: Readonly<Record<string, Way<Held>>> = {
  CREATED: way(holdCreated),
  STARTING: way((config) =>
    startLive({ app: 'conformance-app', config: { ...config, 'broker.bootstrap-servers': '127.0.0.1:1' } }),
  ),
  RESTORING: way(holdRestoring),
  RUNNING: way(running, async (live) => {
    if ((await live.state()) !== 'RUNNING') await post(live, '/unpause')
    await live.untilState('RUNNING')
  }),
  DRAINING: way(
    async (config) => {
      const live = await withSlowRecord({ ...config, 'commit-barrier.timeout-ms': never })
      await post(live, '/pause')
      await live.untilState('DRAINING')
      return live
    },
    async (live) => {
      if ((await live.state()) === 'RUNNING') await post(live, '/pause')
      await live.untilState('DRAINING')
    },
  ),
  PAUSED: way(
    async (config) => {
      const live = await running(config)
      await post(live, '/pause')
      await live.untilState('PAUSED')
      return live
    },
    async (live) => {
      if ((await live.state()) === 'RUNNING') await post(live, '/pause')
      await live.untilState('PAUSED')
    },
  ),
  RESTARTING: way(holdRestarting),
  STOPPING: way(async (config) => {
    const slow = { 'commit-barrier.timeout-ms': never, 'runtime.shutdown.timeout': never }
    const live = await withSlowRecord({ ...config, ...slow })
    void live.runtime.stop()
    await live.untilState('STOPPING')
    return live
  }),
  STOPPED: way(holdStopped),
  FAILED: way(async (config) => {
    const live = await running(config)
    await live.feed('words', [{ key: 'x', value: { text: 'x', poison: true }, timestamp: 1e12 + 10 }])
    await live.untilState('FAILED')
    return live
  }),
}

/** One engine for each situation, kept for all its rows. */
export function runtimeSubject(): Subject {
  const kept = new Map<string, Promise<Held>>()
  after(async () => {
    for (const live of await Promise.allSettled(kept.values())) if (live.status === 'fulfilled') await live.value.stop()
    endLeftThreads()
  })
  const instanceOf = (live: Held): Instance => ({
    url: live.url,
    ask: (question) => ask(live.url, question),
    fake: undefined,
    get log() {
      return live.log.map((line) => `${line.level} ${line.message}`)
    },
    published: [],
    stop: async () => undefined,
  })
  return {
    name: 'the running engine',
    isFake: false,
    cannot: (situation) => reasonAgainst(situation),
    start: async (situation) => {
      const state = situation.state ?? 'RUNNING'
      const status = situation.license?.status
      const way =
        status !== undefined && isLicensedStatus(status)
          ? { bring: () => startLicensed(status) }
          : (ways[state] as Way<Held>)
      const config = Object.fromEntries(
        Object.entries(situation.config ?? {}).map(([key, value]) => [configKeys[key as keyof HttpConfig], value]),
      )
      // Nobody listens there.
      if (situation.schemaRegistry === 'down') config['schema-registry.url'] = 'http://127.0.0.1:1'
      const key = JSON.stringify([state, status, config])
      const known = kept.get(key)
      const live = known ?? way.bring(config)
      kept.set(key, live)
      if (known !== undefined) await way.restore?.(await live)
      return instanceOf(await live)
    },
  }
}

function reasonAgainst(situation: Situation): string | undefined {
  if (!(String(situation.state ?? 'RUNNING') in ways)) return `${situation.state} does not last`
  if (situation.ha !== undefined || situation.state === 'STANDBY') return 'high availability has its own tests'
  if (situation.license !== undefined && !isLicensedStatus(situation.license.status)) return 'no such license'
  if (situation.schemaRegistry === 'up') return 'needs a registry'
  const odd = Object.keys(situation.config ?? {}).filter((key) => !(key in configKeys) || !(key in defaultHttpConfig))
  return odd.length === 0 ? undefined : `configuration ${odd.join(', ')}`
}
