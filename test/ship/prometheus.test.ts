/** Alerts and dashboards by a real Prometheus: what fires and what is silent, and that every panel gives data. */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type EmbeddedBroker, type Runtime, startEmbeddedBroker, startRuntime } from 'millrace/runtime'
import { stringify } from 'yaml'
import { appFile } from '../engine/support/engine.ts'
import { alertRules, monitoringFolder, panelExpressions } from '../support/expressions.ts'
import { eventually } from '../support/millrace.ts'
import { freePort } from '../../scripts/free-ports.ts'

const missing = (command: string): string | false =>
  spawnSync(command, ['--version']).error === undefined
    ? false
    : `${command} is not on this machine (Debian's package prometheus has it)`

const folder = mkdtempSync(join(tmpdir(), 'millrace-prometheus-'))
const pod = '{instance="a:8080",job="millrace"'
const with_ = (labels: string): string => `${pod},${labels}}`

type Series = Readonly<Record<string, string>>

/** An hour in which nothing is wrong, a value a minute. */
const healthy: Series = {
  [`up${pod}}`]: '1x60',
  'up{instance="c:9100",job="node"}': '0x60',
  [`engine_state${with_('state="RUNNING"')}`]: '1x60',
  [`engine_state${with_('state="FAILED"')}`]: '0x60',
  [`engine_state${with_('state="STARTING"')}`]: '0x60',
  // A start of ten minutes, in its midst.
  [`engine_state${with_('state="RESTORING"')}`]: '0x20 1x10 0x28',
  [`engine_standstill_seconds${with_('code="BROKER_GONE"')}`]: '0x60',
  [`engine_state_since_timestamp_seconds${pod}}`]: '0x60',
  [`engine_last_commit_timestamp_seconds${pod}}`]: '0+60x60',
  [`engine_lag_records${pod}}`]: '12x60',
  [`engine_broker_connected${pod}}`]: '1x60',
  [`engine_restarts_total${with_('cause="LANE_FAILED"')}`]: '0x60',
  [`engine_lanes_alive${pod}}`]: '4x60',
  [`engine_lanes${pod}}`]: '4x60',
  [`engine_commits_total${with_('outcome="aborted"')}`]: '1x60',
  [`engine_records_dropped_total${with_('subtopology="0",reason="handler"')}`]: '0x60',
  [`engine_records_dropped_total${with_('subtopology="0",reason="late"')}`]: '0+1x60',
  [`engine_records_dispatched_total${pod}}`]: '0+60000x60',
  [`engine_dead_letter_records_total${with_('lane="lane-0",reason="handler"')}`]: '0x60',
  [`engine_thread_silence_seconds${pod}}`]: '0x60',
  [`engine_ha_redundancy_below_desired${pod}}`]: '0x60',
  [`engine_ha_state${with_('state="ACTIVE"')}`]: '1x60',
  [`engine_license_expires_timestamp_seconds${pod}}`]: '90000000x60',
}

/** What differs from that hour where each alert is to fire. */
const situations: Readonly<Record<string, Series>> = {
  MillraceDown: { [`up${pod}}`]: '0x60' },
  MillraceFailed: { [`engine_state${with_('state="FAILED"')}`]: '1x60' },
  MillraceStandsStill: { [`engine_standstill_seconds${with_('code="BROKER_GONE"')}`]: '0+60x60' },
  MillraceNoCommits: { [`engine_last_commit_timestamp_seconds${pod}}`]: '0x60' },
  MillraceStartsLong: { [`engine_state${with_('state="RESTORING"')}`]: '1x60' },
  MillraceLagGrows: { [`engine_lag_records${pod}}`]: '20000+100x60' },
  MillraceBrokerAway: { [`engine_broker_connected${pod}}`]: '0x60' },
  MillraceRestarts: { [`engine_restarts_total${with_('cause="LANE_FAILED"')}`]: '0+1x60' },
  MillraceLaneLost: { [`engine_lanes_alive${pod}}`]: '3x60' },
  MillraceCommitsAbort: { [`engine_commits_total${with_('outcome="aborted"')}`]: '0+1x60' },
  MillraceRecordsFail: {
    [`engine_records_dropped_total${with_('subtopology="0",reason="handler"')}`]: '0+1x60',
  },
  MillraceDeadLetters: {
    [`engine_dead_letter_records_total${with_('lane="lane-0",reason="handler"')}`]: '0+1x60',
  },
  MillraceRecordsLate: { [`engine_records_dropped_total${with_('subtopology="0",reason="late"')}`]: '0+1000x60' },
  MillraceThreadSilent: { [`engine_thread_silence_seconds${pod}}`]: '0+60x60' },
  MillraceFewStandbys: { [`engine_ha_redundancy_below_desired${pod}}`]: '1x60' },
  MillraceNobodyActive: { [`engine_ha_state${with_('state="ACTIVE"')}`]: '0x60' },
  MillraceLicenseEnds: { [`engine_license_expires_timestamp_seconds${pod}}`]: '86400x60' },
}

const release = '{instance="b:8080",job="orders",namespace="shop"}'
const staging = '{instance="b:8080",job="millrace",namespace="staging",state="ACTIVE"}'

/** Jobs that have the names of a chart's releases, and stand in several namespaces; a process that has never committed. */
const further: ReadonlyArray<readonly [alert: string, differences: Series]> = [
  ['MillraceDown', { [`up${release}`]: '1x10 0x50', [`engine_info${release}`]: '1x10 _x50' }],
  ['MillraceNobodyActive', { [`engine_ha_state${staging}`]: '0x60' }],
  [
    'MillraceNoCommits',
    {
      [`engine_last_commit_timestamp_seconds${pod}}`]: '_x60',
      [`engine_state_since_timestamp_seconds${pod}}`]: '0x60',
    },
  ],
]

/** The test of one hour: these alerts fire in it, no others. */
function hour(differences: Series, firing: readonly string[]): object {
  const input = Object.entries({ ...healthy, ...differences }).map(([series, values]) => ({ series, values }))
  const promql = firing.map((name) => ({
    expr: `count(ALERTS{alertname="${name}",alertstate="firing"})`,
    eval_time: '50m',
    exp_samples: [{ labels: '{}', value: 1 }],
  }))
  const others = firing.length === 0 ? '' : `,alertname!~"${firing.join('|')}"`
  const silent = { expr: `ALERTS{alertstate="firing"${others}}`, eval_time: '50m', exp_samples: [] }
  return { interval: '1m', input_series: input, promql_expr_test: [...promql, silent] }
}

describe('alerts', () => {
  const skip = missing('promtool')

  test('every alert has a situation', () => {
    assert.deepEqual(
      Object.keys(situations).sort(),
      alertRules()
        .map(({ alert }) => alert)
        .sort(),
    )
  })

  test('each fires in its situation alone, and none in a healthy hour', { skip }, () => {
    const all = [...Object.entries(situations), ...further]
    const cases = all.map(([alert, differences]) => hour(differences, [alert]))
    const file = join(folder, 'alerts.test.yml')
    writeFileSync(
      file,
      stringify({ rule_files: [join(monitoringFolder, 'alerts.yml')], tests: [hour({}, []), ...cases] }),
    )
    execFileSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
  })
})

/** What has something to show only when something is wrong. */
const emptyWhenHealthy = /engine_standstill_seconds|engine_partition_idle|engine_ha_last_promotion_seconds/

describe('dashboards', () => {
  const skip = missing('prometheus')
  let broker: EmbeddedBroker | undefined
  const pods: Runtime[] = []
  let prometheus: ReturnType<typeof spawn> | undefined
  let address = ''

  before(async () => {
    if (skip) return
    const shared = await startEmbeddedBroker({ partitions: 2 })
    broker = shared
    for (const id of ['a', 'b']) {
      const config = {
        'ha.mode': 'hot-standby',
        'ha.pod-id': id,
        'engine.state.store': 'memory',
        'engine.lanes.count': 1,
      } as const
      const http = { 'runtime.http.host': '127.0.0.1', 'runtime.http.port': 0 }
      const application = appFile('running-sum')
      pods.push(
        await startRuntime({ application, broker: shared, config: { ...config, ...http }, log: () => undefined }),
      )
    }
    const targets = pods.map(({ url }) => new URL(url as string).host)
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      scrape_configs: [{ job_name: 'millrace', static_configs: [{ targets }] }],
    }
    writeFileSync(join(folder, 'prometheus.yml'), stringify(config))
    address = `127.0.0.1:${await freePort()}`
    const args = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'data')}`]
    prometheus = spawn('prometheus', [...args, `--web.listen-address=${address}`], { stdio: 'ignore' })
  })
  after(async () => {
    if (prometheus) {
      const ended = once(prometheus, 'exit')
      prometheus.kill('SIGTERM')
      await ended
    }
    for (const runtime of pods) await runtime.stop()
    await broker?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  test('every panel gives data of a running application', { skip }, async () => {
    await eventually('a pod is active', () => pods.some(({ ha }) => ha?.status()?.selfState === 'ACTIVE'))
    const query = async (text: string): Promise<number> => {
      const filled = text.replaceAll('$__rate_interval', '30s').replaceAll('$instance', '.*')
      const url = `http://${address}/api/v1/query?query=${encodeURIComponent(filled)}`
      const answer = await fetch(url).catch(() => undefined)
      if (answer === undefined) return 0
      const { status, error, data } = (await answer.json()) as {
        readonly status: string
        readonly error?: string
        readonly data?: { readonly result: readonly unknown[] }
      }
      assert.ok(status === 'success' || answer.status === 503, `${text}: ${error}`)
      return data?.result.length ?? 0
    }
    let left = panelExpressions().filter(({ text }) => !emptyWhenHealthy.test(text))
    assert.ok(left.length > 35, `${left.length} expressions`)
    await eventually(
      'all panels have data',
      async () => {
        // Each partition gets some: one without any holds the watermark back.
        await pods[0]?.produce(
          'numbers',
          ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => ({ key, value: 1 })),
        )
        const still: typeof left = []
        for (const line of left) if ((await query(line.text)) === 0) still.push(line)
        left = still
        return left.length === 0
      },
      120_000,
    ).catch((error) => {
      assert.deepEqual(
        left.map(({ place, text }) => `${place}: ${text}`),
        [],
        String(error),
      )
    })
  })
})
