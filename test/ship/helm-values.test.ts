/** What the values of the chart say, pods run with; where two of them contradict each other, the chart says so. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { tryParseDuration } from '../../src/base/duration.ts'
import { loadConfig } from '../../src/config/load.ts'
import { environmentName } from '../../src/config/sources.ts'
import { configKeys } from '../../src/config/table.ts'
import { overlays } from '../support/manifests.ts'
import { chart, configOf, helm, ofKind, podOf, type Resource, render, renderChart } from './support/chart.ts'

/** A chart as a project has it. */
function chartWith(t: TestContext, engineYaml: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chart-'))
  t.after(() => rmSync(folder, { recursive: true }))
  cpSync(chart, folder, { recursive: true })
  writeFileSync(join(folder, 'engine.yaml'), engineYaml)
  return folder
}

const variable = (name: string, value: string): string[] => [`env[0].name=${name}`, `env[0].value=${value}`]

describe('a key that the chart sets itself', { skip: helm.missing }, () => {
  const secrets = ['http.tlsSecret=tls', 'http.tokenSecret=token']

  for (const mode of overlays) {
    test(`${mode}: is a key of the configuration, and said once`, () => {
      const names = podOf(render(`mode=${mode}`, ...secrets)).containers[0].env.map(({ name }) => name)
      const known = new Set(configKeys.map(environmentName))
      assert.deepEqual(
        names.filter((name) => !known.has(name)),
        [],
      )
      const twice = podOf(render(`mode=${mode}`, ...variable('ENGINE_LANES_COUNT', '7'))).containers[0].env
      assert.equal(twice.filter(({ name }) => name === 'ENGINE_LANES_COUNT').length, 1)
    })
  }

  for (const [about, set, key, value] of [
    ['nobody says', [], 'engine.lanes.count', 2],
    ['`lanes` says', ['lanes=5'], 'engine.lanes.count', 5],
    ['`config` says', ['config.engine.lanes.count=3'], 'engine.lanes.count', 3],
    ['both say', ['config.engine.lanes.count=3', 'lanes=3'], 'engine.lanes.count', 3],
    ['`config` says under a name with dots', ['config.engine\\.lanes.count=3'], 'engine.lanes.count', 3],
    ['`env` says', [...variable('ENGINE_LANES_COUNT', '7'), 'config.engine.lanes.count=3'], 'engine.lanes.count', 7],
    ['nobody says', ['mode=hot-standby', 'replicas=4'], 'ha.desired-standbys', 3],
    ['`config` says', ['mode=hot-standby', 'config.ha.desired-standbys=1'], 'ha.desired-standbys', 1],
    ['`config` says', ['mode=hot-standby', 'config.ha.desired-standbys=0'], 'ha.desired-standbys', 0],
    ['`config` says the same', ['config.engine.state.dir=/state'], 'engine.state.dir', '/state'],
    ['`config` says the same', ['mode=hot-standby', 'config.ha.mode=hot-standby'], 'ha.mode', 'hot-standby'],
  ] as const) {
    test(`${key} is ${value}, as ${about}`, () => {
      assert.equal(configOf(render(...set)).get(key), value)
    })
  }

  test('stands over what a project has in its engine.yaml', (t) => {
    const folder = chartWith(t, 'ha:\n  mode: hot-standby\n  desired-standbys: 1\n')
    assert.equal(configOf(renderChart(folder, 'mode=hot-standby')).get('ha.desired-standbys'), 2)
  })

  for (const [set, sentence] of [
    [['config.engine.lanes.count=3', 'lanes=4'], /engine\.lanes\.count is 3 in `config`, but `lanes` is 4: keep one/],
    [[...variable('ENGINE_LANES_COUNT', '7'), 'lanes=4'], /engine\.lanes\.count is 7 in `env`, but `lanes` is 4/],
    [
      ['config.engine.state.dir=/data'],
      /engine\.state\.dir is \/data in `config`, but the disk .* \/state: leave it out/,
    ],
    [['mode=hot-standby', 'config.ha.mode=off'], /ha\.mode is off in `config`, but `mode` is hot-standby/],
    [['mode=hot-standby', 'config.ha.pod-id=one'], /ha\.pod-id is one in `config`, but pods go by their own names/],
    [['mode=group', 'config.engine.instance-id=one'], /engine\.instance-id is one in `config`, but pods go by/],
    [['mode=group', 'config.topology.sub-topology-split=in-process'], /sub-topology-split is .*, but `mode` is group/],
    [['http.tlsSecret=a', 'config.runtime.http.tls.cert-file=/b'], /cert-file is \/b .*, but `http\.tlsSecret` is a/],
    [
      ['http.tokenSecret=a', 'config.runtime.http.auth.token-file=/b'],
      /token-file is .*, but `http\.tokenSecret` is a/,
    ],
  ] as const) {
    test(`is refused where it cannot be: ${set.join(', ')}`, () => {
      assert.throws(() => render(...set), sentence)
    })
  }
})

describe('the port of the interface', { skip: helm.missing }, () => {
  const portsOf = (resources: readonly Resource[]): unknown[] => {
    const { ports } = ofKind(resources, 'Service').spec as { ports: Array<{ port: number; targetPort: string }> }
    assert.equal(ports[0]?.targetPort, 'http')
    const [{ ports: own }] = podOf(resources).containers
    return [configOf(resources).get('runtime.http.port'), own[0]?.containerPort, ports[0]?.port]
  }

  test('is the one of the configuration, wherever that says it, in pods and service', (t) => {
    assert.deepEqual(portsOf(render()), [8080, 8080, 8080])
    assert.deepEqual(portsOf(render('config.runtime.http.port=9090')), [9090, 9090, 9090])
    assert.deepEqual(portsOf(render(...variable('RUNTIME_HTTP_PORT', '9191'))), [9191, 9191, 9191])
    const folder = chartWith(t, 'runtime:\n  http:\n    port: 7070\n')
    assert.deepEqual(portsOf(renderChart(folder)), [7070, 7070, 7070])
    assert.deepEqual(portsOf(renderChart(folder, 'config.runtime.http.port=9090')), [9090, 9090, 9090])
  })

  for (const [set, sentence] of [
    [['config.runtime.http.enabled=false'], /runtime\.http\.enabled is false in `config`, but the probes ask pods/],
    [variable('RUNTIME_HTTP_ENABLED', 'false'), /runtime\.http\.enabled is false in `env`/],
    [['config.runtime.http.host=127.0.0.1'], /runtime\.http\.host is 127\.0\.0\.1 in `config`, where no probe reaches/],
    [['config.runtime.http.host=localhost'], /runtime\.http\.host is localhost in `config`/],
  ] as const) {
    test(`is open to the probes: ${set.join(', ')}`, () => {
      assert.throws(() => render(...set), sentence)
    })
  }

  test('may be bound to any address that they reach', () => {
    assert.equal(configOf(render('config.runtime.http.host=10.0.0.7')).get('runtime.http.host'), '10.0.0.7')
    assert.equal(configOf(render('config.runtime.http.enabled=true')).get('runtime.http.enabled'), true)
  })

  test('must be one that the probes know', () => {
    assert.throws(() => render('config.runtime.http.port=0'), /runtime\.http\.port is 0 in `config`, but the probes/)
  })
})

describe('the number of pods', { skip: helm.missing }, () => {
  const replicasOf = (...set: string[]): unknown => ofKind(render(...set), 'StatefulSet').spec?.replicas

  test('of one identity is one at most', () => {
    assert.throws(
      () => render('replicas=3'),
      /replicas is 3, but `mode` is single: .* set mode to hot-standby or group/,
    )
    assert.equal(replicasOf('replicas=1'), 1)
  })

  for (const mode of overlays) {
    test(`${mode}: may be none, to which a release is scaled down`, () => {
      assert.equal(replicasOf(`mode=${mode}`, 'replicas=0'), 0)
      assert.ok(configOf(render(`mode=${mode}`, 'replicas=0')).get('ha.desired-standbys') >= 0)
      assert.equal(replicasOf(`mode=${mode}`, 'replicas=null'), mode === 'single' ? 1 : 3)
    })
  }
})

describe('the time that a pod has to end', { skip: helm.missing }, () => {
  const graceOf = (...set: string[]): number => podOf(render(...set)).terminationGracePeriodSeconds

  for (const timeout of [
    '70s',
    '90000',
    '1200000',
    '1m30s',
    '1m 30.5 s',
    '2m',
    'PT1M30S',
    'pt1.5h',
    'P1DT2H',
    '1d2h',
  ]) {
    test(`is longer than a shutdown of ${timeout}`, () => {
      const seconds = Math.ceil((tryParseDuration(timeout) ?? Number.NaN) / 1000)
      assert.equal(graceOf(`config.runtime.shutdown.timeout=${timeout}`), seconds + 10)
      assert.equal(graceOf(...variable('RUNTIME_SHUTDOWN_TIMEOUT', timeout)), seconds + 10)
    })
  }

  test('is a minute at least, and what is said where that is enough', () => {
    assert.equal(graceOf(), 60)
    assert.equal(graceOf('config.runtime.shutdown.timeout=5s'), 60)
    assert.equal(graceOf('terminationGracePeriodSeconds=90'), 90)
    assert.equal(graceOf('config.runtime.shutdown.timeout=5s', 'terminationGracePeriodSeconds=20'), 20)
  })

  test('is refused where a pod would be killed in the middle', () => {
    const sentence = /terminationGracePeriodSeconds is 30, but .* may take 55 s to end: leave it out/
    assert.throws(() => render('terminationGracePeriodSeconds=30', 'config.runtime.shutdown.timeout=45s'), sentence)
    const ofDefault = loadConfig({}).get('runtime.shutdown.timeout') / 1000
    assert.equal(graceOf(`terminationGracePeriodSeconds=${ofDefault + 10}`), ofDefault + 10)
    assert.throws(() => render(`terminationGracePeriodSeconds=${ofDefault + 9}`), /may take 35 s to end/)
  })
})
