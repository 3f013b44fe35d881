import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { EngineError } from '../../src/base/errors.ts'
import { type HealthReport, HealthRegistry, type IndicatorOptions } from '../../src/http/health.ts'
import { noKeyLicense } from '../../src/http/license-seam.ts'
import { eventually } from '../support/millrace.ts'
import { FakeEngine } from './support/fake-engine.ts'

function registryWith(...indicators: IndicatorOptions[]): HealthRegistry {
  const registry = new HealthRegistry({ view: new FakeEngine(), license: noKeyLicense() })
  for (const indicator of indicators) registry.register(indicator)
  return registry
}

const component = (report: HealthReport, name: string) => report.components.find((each) => each.name === name)

describe('an engine that waits for room on the disk', () => {
  test('is not ready, and says which stores wait, but alive', (t) => {
    const view = new FakeEngine()
    const registry = new HealthRegistry({ view, license: noKeyLicense() })
    t.after(() => registry.close())
    assert.equal(registry.report('ready').status, 'UP')
    view.full = 'The disk has no room for the store of partition 3 in /state'
    const ready = registry.report('ready')
    assert.equal(ready.status, 'DOWN')
    assert.match(ready.error ?? '', /no room for the store of partition 3 in \/state/)
    assert.equal(component(ready, 'engine')?.details.code, 'STORE_DISK_FULL')
    assert.equal(registry.report('live').status, 'UP')
  })
})

describe('indicators of the application', () => {
  test('count for readiness, and for liveness where they say so', (t) => {
    const registry = registryWith(
      { name: 'disk', check: () => false },
      { name: 'deadlock', probes: ['live'], check: () => ({ up: false, details: { waiting: 3 } }) },
    )
    t.after(() => registry.close())
    const ready = registry.report('ready')
    assert.equal(ready.status, 'DOWN')
    assert.match(ready.error ?? '', /disk is DOWN; deadlock is DOWN/)
    const live = registry.report('live')
    assert.deepEqual(
      live.components.map((each) => each.name),
      ['engine', 'deadlock'],
    )
    assert.deepEqual(component(live, 'deadlock')?.details, { waiting: 3 })
  })

  test('are checked at once and periodically, never inside a probe', async (t) => {
    let checks = 0
    const registry = registryWith({
      name: 'counted',
      intervalMs: 20,
      check: () => {
        checks++
        return true
      },
    })
    t.after(() => registry.close())
    assert.equal(checks, 1)
    for (let i = 0; i < 100; i++) registry.report('ready')
    assert.equal(checks, 1)
    await eventually('it is checked again and again', () => checks >= 3)
  })

  test('without a first answer are not ready, but alive', async (t) => {
    const registry = registryWith({ name: 'slow', probes: ['live'], check: () => new Promise(() => undefined) })
    t.after(() => registry.close())
    assert.equal(registry.report('ready').status, 'DOWN')
    assert.match(registry.report('ready').error ?? '', /not been checked/)
    assert.equal(registry.report('live').status, 'UP')
  })

  test('that throw, reject or take too long are DOWN, and what they threw stays inside', async (t) => {
    const registry = registryWith(
      {
        name: 'throws',
        check: () => {
          throw new Error('canary')
        },
      },
      { name: 'rejects', check: () => Promise.reject(new Error('canary')) },
      { name: 'hangs', timeoutMs: 10, check: () => new Promise(() => undefined) },
    )
    t.after(() => registry.close())
    await eventually(
      'the one that hangs is given up',
      () => component(registry.report('ready'), 'hangs')?.details.error !== undefined,
    )
    const report = registry.report('ready')
    for (const name of ['throws', 'rejects', 'hangs']) assert.equal(component(report, name)?.status, 'DOWN')
    assert.ok(!JSON.stringify(report).includes('canary'))
  })

  test('recover, and can be taken out again', async (t) => {
    let up = false
    const registry = registryWith()
    t.after(() => registry.close())
    const remove = registry.register({ name: 'later', intervalMs: 10, check: async () => up })
    await nextTurn()
    assert.equal(registry.report('ready').status, 'DOWN')
    up = true
    await eventually('it is up', () => registry.report('ready').status === 'UP')
    up = false
    await eventually('it is down', () => registry.report('ready').status === 'DOWN')
    remove()
    assert.equal(registry.report('ready').status, 'UP')
  })

  test('need a fitting name of their own', () => {
    const registry = registryWith({ name: 'taken', check: () => true })
    for (const name of ['taken', 'engine', 'license', 'schema-registry', '', 'With Space', 'x'.repeat(64)]) {
      assert.throws(
        () => registry.register({ name, check: () => true }),
        (error) => EngineError.is(error) && error.code === 'CONFIG_INVALID',
        name,
      )
    }
    registry.close()
  })
})

describe('the schema registry', () => {
  test('is DOWN when nobody answers', async (t) => {
    const check = async (): Promise<never> => {
      throw new Error('connect ECONNREFUSED')
    }
    const registry = new HealthRegistry({ view: new FakeEngine(), license: noKeyLicense(), schemaRegistry: check })
    t.after(() => registry.close())
    await eventually(
      'it has been asked',
      () => component(registry.report('ready'), 'schema-registry')?.details.error !== undefined,
    )
    assert.equal(registry.report('ready').status, 'DOWN')
    assert.equal(registry.report('live').status, 'UP')
  })
})
