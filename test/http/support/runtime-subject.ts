import { after } from 'node:test'
import { defaultHttpConfig, type HttpConfig } from '../../../src/http/http-config.ts'
import { ask } from './client.ts'
import { endLeftThreads, type Live, startLive } from './live.ts'
import type { Instance, Situation, Subject } from './subject.ts'

const configKeys: Partial<Record<keyof HttpConfig, string>> = {
  metricsEnabled: 'runtime.metrics.enabled',
  configEndpointEnabled: 'runtime.endpoints.config.enabled',
  debugEnabled: 'runtime.http.debug.enabled',
}

/** Long enough that whatever waits for this record waits until the end. */
const never = 3_600_000

type Bring = (config: Readonly<Record<string, unknown>>) => Promise<Live>

async function running(config: Readonly<Record<string, unknown>>): Promise<Live> {
  const live = await startLive({ app: 'conformance-app', config })
  await live.untilState('RUNNING')
  const words = ['a', 'b', 'c', 'd'].map((text, i) => ({ key: text, value: { text }, timestamp: 1e12 + i }))
  await live.feed('words', words)
  await live.runtime.untilIdle()
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

/** How an engine is brought into each state, and how it is brought back into it after a row. */
const ways: Readonly<Record<string, { readonly bring: Bring; readonly restore?: (live: Live) => Promise<void> }>> = {
  STARTING: {
    bring: (config) =>
      startLive({ app: 'conformance-app', config: { ...config, 'broker.bootstrap-servers': '127.0.0.1:1' } }),
  },
  RUNNING: {
    bring: running,
    restore: async (live) => {
      if ((await live.state()) !== 'RUNNING') await live.ask({ method: 'POST', path: '/unpause' })
      await live.untilState('RUNNING')
    },
  },
  DRAINING: {
    bring: async (config) => {
      const live = await withSlowRecord({ ...config, 'commit-barrier.timeout-ms': never })
      await live.ask({ method: 'POST', path: '/pause' })
      await live.untilState('DRAINING')
      return live
    },
    restore: async (live) => {
      if ((await live.state()) === 'RUNNING') await live.ask({ method: 'POST', path: '/pause' })
      await live.untilState('DRAINING')
    },
  },
  PAUSED: {
    bring: async (config) => {
      const live = await running(config)
      await live.ask({ method: 'POST', path: '/pause' })
      await live.untilState('PAUSED')
      return live
    },
    restore: async (live) => {
      if ((await live.state()) === 'RUNNING') await live.ask({ method: 'POST', path: '/pause' })
      await live.untilState('PAUSED')
    },
  },
  STOPPING: {
    bring: async (config) => {
      const slow = { 'commit-barrier.timeout-ms': never, 'runtime.shutdown.timeout': 20_000 }
      const live = await withSlowRecord({ ...config, ...slow })
      void live.runtime.stop()
      await live.untilState('STOPPING')
      return live
    },
  },
  FAILED: {
    bring: async (config) => {
      const live = await running(config)
      await live.feed('words', [{ key: 'x', value: { text: 'x', poison: true }, timestamp: 1e12 + 10 }])
      await live.untilState('FAILED')
      return live
    },
  },
}

/** One engine a situation, kept for all its rows. */
export function runtimeSubject(): Subject {
  const kept = new Map<string, Promise<Live>>()
  after(async () => {
    for (const live of await Promise.allSettled(kept.values())) if (live.status === 'fulfilled') await live.value.stop()
    endLeftThreads()
  })
  const instanceOf = (live: Live): Instance => ({
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
      const way = ways[state] as (typeof ways)[string]
      const config = Object.fromEntries(
        Object.entries(situation.config ?? {}).map(([key, value]) => [configKeys[key as keyof HttpConfig], value]),
      )
      const key = JSON.stringify([state, config])
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
  if (situation.ha !== undefined) return 'high availability has its own tests'
  if (situation.license !== undefined) return 'the license has its own tests'
  if (situation.schemaRegistry !== undefined) return 'needs a registry'
  const odd = Object.keys(situation.config ?? {}).filter((key) => !(key in configKeys) || !(key in defaultHttpConfig))
  return odd.length === 0 ? undefined : `configuration ${odd.join(', ')}`
}
