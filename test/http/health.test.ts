import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { VirtualClock } from '../../src/base/clock.ts'
import { EngineError } from '../../src/base/errors.ts'
import type { HaStatus, HaView } from '../../src/http/ha-seam.ts'
import { type HealthReport, HealthRegistry, type IndicatorOptions } from '../../src/http/health.ts'
import { noKeyLicense } from '../../src/http/license-seam.ts'
import { diagnosisOf } from './support/diagnosis.ts'
import { eventually } from '../support/millrace.ts'
import type { LifecycleState } from '../../src/view/view.ts'
import { FakeEngine, stateReached } from './support/fake-engine.ts'
import { standby } from './support/ha-samples.ts'

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

describe('a broker in this process that stores nothing', () => {
  for (const [isWaiting, code] of [
    [true, 'BROKER_DISK_FULL'],
    [false, 'BROKER_STOPPED'],
  ] as const) {
    test(`is DOWN for readiness, with the code ${code}`, (t) => {
      const view = new FakeEngine()
      const registry = new HealthRegistry({ view, license: noKeyLicense() })
      t.after(() => registry.close())
      view.link = { ...view.link, trouble: { isWaiting, sentence: 'The disk of the embedded broker has no room.' } }
      const ready = registry.report('ready')
      assert.equal(ready.error, 'not ready: the disk of the embedded broker has no room')
      assert.equal(component(ready, 'broker')?.details.code, code)
      assert.equal(registry.report('live').status, 'UP')
    })
  }
})

describe('a pod without the active role', () => {
  const ready = (state: LifecycleState, selfRole: string, selfState: string): HealthReport => {
    const view = new FakeEngine()
    view.now = stateReached(state)
    const status: HaStatus = { ...standby, selfRole, selfState }
    const ha = { status: () => status } as HaView
    const registry = new HealthRegistry({ view, license: noKeyLicense(), ha })
    try {
      return registry.report('ready')
    } finally {
      registry.close()
    }
  }

  for (const state of ['RUNNING', 'DRAINING', 'PAUSED'] as const) {
    test(`is not ready, whatever its engine still says of itself (${state})`, () => {
      for (const selfState of ['BOOTSTRAPPING', 'CATCHING_UP', 'READY_STANDBY', 'PROMOTING', 'STOPPING', 'NEW']) {
        const report = ready(state, 'STANDBY', selfState)
        assert.equal(report.status, 'DOWN', selfState)
        assert.equal(report.error, `not ready: this pod has lost the active role and is ${selfState}`)
        assert.deepEqual(component(report, 'engine')?.details, { state, haState: selfState })
      }
    })

    test(`is told from one that has it, and drains for another (${state})`, () => {
      for (const selfState of ['ACTIVE', 'DEMOTING']) assert.equal(ready(state, 'ACTIVE', selfState).status, 'UP')
      assert.match(ready(state, 'ACTIVE', 'ISOLATED').error ?? '', /cut off from the others \(ISOLATED\)/)
    })
  }
})

describe('an engine whose thread is silent', () => {
  test('is not alive after 30 s in which this process was let run, and alive where the process stood still', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const view = new FakeEngine()
    const clock = new VirtualClock(1_700_000_000_000)
    const diagnosis = diagnosisOf(view, clock)
    const engineSilentMs = (): number => diagnosis.engineSilentMs()
    const registry = new HealthRegistry({ view, license: noKeyLicense(), engineSilentMs })
    t.after(() => {
      registry.close()
      diagnosis.close()
    })
    const passes = (ms: number, isSilent: boolean): void => {
      for (let passed = 0; passed < ms; passed += 250) {
        clock.advance(250)
        view.silenceMs = isSilent ? view.silenceMs + 250 : 0
        t.mock.timers.tick(250)
      }
    }
    passes(1000, false)
    // Nothing of the process runs, and a probe is the first that it answers.
    clock.advance(40_000)
    view.silenceMs += 40_000
    assert.equal(registry.report('live').status, 'UP')
    passes(29_000, true)
    assert.equal(registry.report('live').status, 'UP')
    passes(2000, true)
    const { status, error } = registry.report('live')
    assert.equal(status, 'DOWN')
    assert.match(error ?? '', /engine thread has been silent for 3\d s/)
    assert.equal(registry.report('ready').status, 'DOWN')
    passes(250, false)
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

  test('that answer with what says neither up nor down are DOWN, and say what was expected', async (t) => {
    const answers = [undefined, null, 'UP', 1, {}, { status: 'UP' }, [true]]
    const registry = registryWith()
    t.after(() => registry.close())
    for (const [i, answer] of answers.entries()) {
      registry.register({ name: `now-${i}`, check: () => answer as never })
      registry.register({ name: `later-${i}`, check: async () => answer as never })
    }
    await nextTurn()
    const report = registry.report('ready')
    for (const i of answers.keys()) {
      for (const name of [`now-${i}`, `later-${i}`]) {
        const { status, details } = component(report, name) ?? assert.fail(name)
        assert.equal(status, 'DOWN', name)
        assert.match(String(details.error), /true, false or \{ up, details \}/, name)
      }
    }
  })

  test('may answer through a promise of another make', async (t) => {
    const later = (answer: boolean): PromiseLike<boolean> => ({
      then: (fulfilled) => Promise.resolve(answer).then(fulfilled),
    })
    const broken = {
      then: () => {
        throw new Error('canary')
      },
    }
    const registry = registryWith(
      { name: 'good', check: () => later(true) },
      { name: 'bad', check: () => later(false) },
      { name: 'broken', check: () => broken as never },
    )
    t.after(() => registry.close())
    await nextTurn()
    const report = registry.report('ready')
    const statuses = ['good', 'bad', 'broken'].map((name) => component(report, name)?.status)
    assert.deepEqual(statuses, ['UP', 'DOWN', 'DOWN'])
    assert.deepEqual(component(report, 'broken')?.details, { error: 'check failed' })
  })

  test('with details that JSON cannot have keep their status, and the report its shape', async (t) => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const thrower = {
      get free() {
        throw new Error('canary')
      },
    }
    const registry = registryWith()
    t.after(() => registry.close())
    const all = [{ bytes: 1n }, cyclic, thrower, 'text', [1], () => 1]
    for (const [i, details] of all.entries()) {
      registry.register({ name: `now-${i}`, check: () => ({ up: true, details: details as never }) })
      registry.register({ name: `later-${i}`, check: async () => ({ up: true, details: details as never }) })
    }
    await nextTurn()
    const report = registry.report('ready')
    assert.equal(report.status, 'UP')
    const shown = JSON.parse(JSON.stringify(report)) as HealthReport
    for (const i of all.keys()) {
      for (const name of [`now-${i}`, `later-${i}`])
        assert.match(String(component(shown, name)?.details.error), /JSON/, name)
    }
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
