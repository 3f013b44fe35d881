/** The verdict over sockets: license, standby, restoring; the command that asks for it; every state of an application. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { VirtualClock } from '../../src/base/clock.ts'
import type { WhyAnswer } from '../../src/view/diagnosis/answer.ts'
import { diagnosisOf } from './support/diagnosis.ts'
import { lifecycleStates } from '../../src/view/view.ts'
import { Pods } from '../ha/support/pods.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { withTimes } from '../support/why-times.ts'
import { epochMs, FakeEngine } from './support/fake-engine.ts'
import { startFake } from './support/fake-subject.ts'
import { holdRestoring } from './support/held-states.ts'
import { startLicensed } from './support/licensed.ts'
import { endLeftThreads } from './support/live.ts'

after(() => endLeftThreads())

type AskPath = (question: { path: string; headers?: Record<string, string> }) => Promise<{ json: unknown }>

async function whyOf(instance: { ask: AskPath }): Promise<WhyAnswer> {
  return (await instance.ask({ path: '/why' })).json as WhyAnswer
}

test('a license that was revoked is told with its status, since when, and what it stops', async (t) => {
  const live = await startLicensed('REVOKED')
  t.after(() => live.stop())
  const ask = (): Promise<WhyAnswer> => whyOf(live as unknown as { ask: AskPath })
  const { findings, status, since } = await withTimes('LICENSE_REFUSED', ask, (again) => again())
  assert.deepEqual(
    findings.map(({ code }) => code),
    ['LICENSE_REFUSED'],
  )
  assert.equal(status, 'NOT_MEANT_TO_RUN')
  assert.equal(since, findings[0]?.since)
  assert.match(
    findings[0]?.sentence ?? '',
    /license has been REVOKED for \d+ s\. Because of that \/health\/ready is DOWN/,
  )
})

test('a cause and the stages are told no more time than has passed, whatever the wall clock is set to', (t) => {
  for (const jumpMs of [60_000, -60_000]) {
    const view = new FakeEngine()
    view.full = 'The disk has no room for the store of partition 3 in /state'
    const clock = new VirtualClock(epochMs)
    const diagnosis = diagnosisOf(view, clock)
    t.after(() => diagnosis.close())
    clock.advance(1000)
    const passedMs = (): unknown => {
      const { findings, times } = diagnosis.verdict()
      const cause = findings.find(({ code }) => code === 'STORE_DISK_FULL') ?? assert.fail('it is not found')
      const stages = (times ?? []).map(({ ms }) => ms.busy + ms.idle + ms.held + ms.waiting)
      return { cause: clock.now() - cause.sinceMs, stages }
    }
    assert.deepEqual(passedMs(), { cause: 1000, stages: [1000, 1000, 1000, 1000] })
    clock.jump(jumpMs)
    clock.advance(1000)
    // What was remembered has the time of a clock that is gone: it counts from the step.
    assert.deepEqual(passedMs(), { cause: 0, stages: [2000, 2000, 2000, 2000] })
    clock.advance(1000)
    assert.deepEqual(passedMs(), { cause: 1000, stages: [3000, 3000, 3000, 3000] })
  }
})

test('a long restore is told with store, partition, records and what is left', async (t) => {
  const live = await holdRestoring({})
  t.after(() => live.stop())
  const named = (ask: () => Promise<WhyAnswer>): Promise<void> =>
    eventually('RESTORING is found', async () => (await ask()).findings[0]?.code === 'RESTORING')
  await withTimes('RESTORING', () => whyOf(live as unknown as { ask: AskPath }), named)
  const { findings } = await whyOf(live as unknown as { ask: AskPath })
  assert.match(
    findings[0]?.sentence ?? '',
    /has been rebuilding its stores from their changelogs for \d+ s, .+\. \d+ of \d+ records are restored/,
  )
})

test('a standby names the pod that is active', async (t) => {
  const application = new URL('../engine/apps/standing.ts', import.meta.url)
  const pods = await Pods.start(t, application, ['one', 'two'])
  await eventually('one is active and one stands by', () => {
    const states = pods.living.map(({ lifecycle }) => lifecycle).sort()
    return states.join() === 'RUNNING,STANDBY'
  })
  const standby = pods.living.find(({ lifecycle }) => lifecycle === 'STANDBY')
  const active = pods.living.find(({ lifecycle }) => lifecycle === 'RUNNING')
  const verdict = async (): Promise<WhyAnswer> => (await standby?.ask('GET', '/why'))?.body as unknown as WhyAnswer
  const named = (ask: () => Promise<WhyAnswer>): Promise<void> =>
    eventually('it names the active pod', async () => (await ask()).findings[0]?.place.pod === active?.id)
  await withTimes('STANDBY', verdict, named)
  const { status, findings, verdict: sentence } = await verdict()
  assert.equal(status, 'NOT_MEANT_TO_RUN')
  assert.deepEqual(
    findings.map(({ code }) => code),
    ['STANDBY'],
  )
  assert.match(sentence, new RegExp(`pod ${active?.id} is active: it said [A-Z_]+ \\d+ s ago`))
})

describe('GET /why', () => {
  for (const state of ['UNINITIALIZED', ...lifecycleStates] as const) {
    test(`answers in ${state}, as JSON and as text`, async (t) => {
      const instance = await startFake({ state })
      t.after(() => instance.stop())
      const answer = await fetch(`${instance.url}/why`)
      assert.equal(answer.status, 200)
      const { verdict, status, since, findings } = (await answer.json()) as WhyAnswer
      assert.ok(verdict.length > 10)
      assert.equal(new Date(since).toISOString(), since)
      if (state === 'FAILED') assert.equal(status, 'FAILED')
      if (['PAUSED', 'DRAINING', 'STANDBY', 'STOPPING', 'STOPPED'].includes(state)) {
        assert.equal(status, 'NOT_MEANT_TO_RUN', JSON.stringify(findings))
      }
      const text = await (await fetch(`${instance.url}/why`, { headers: { Accept: 'text/plain' } })).text()
      assert.match(text, new RegExp(`^Application \\S+\\n${status} since \\d{4}-`))
      assert.ok(text.split('\n').every((line) => line.length <= 80 || !line.includes(' ', 12)))
    })
  }
})

describe('millrace why', () => {
  for (const [state, wanted, code] of [
    ['RUNNING', 'FLOWING', 0],
    ['PAUSED', 'NOT_MEANT_TO_RUN', 12],
    ['FAILED', 'FAILED', 13],
  ] as const) {
    test(`prints the verdict and ends with ${code} where the status is ${wanted}`, async (t) => {
      const instance = await startFake({ state })
      t.after(() => instance.stop())
      const told = await millrace(['why', '--url', instance.url])
      assert.equal(told.code, code, told.stderr + told.stdout)
      assert.match(told.stdout, new RegExp(`^Application \\S+\\n${wanted} since `))
      const asJson = await millrace(['why', '--url', instance.url, '--json'])
      assert.equal((JSON.parse(asJson.stdout) as WhyAnswer).status, wanted)
      assert.equal(asJson.code, code)
    })
  }

  for (const [status, code] of [
    ['SLOW', 10],
    ['STANDING', 11],
  ] as const) {
    test(`ends with ${code} where the status is ${status}`, async (t) => {
      const answer: WhyAnswer = {
        verdict: 'It is so.',
        status,
        since: new Date(0).toISOString(),
        findings: [],
        flow: [],
      }
      const server = createServer((_, response) => response.end(JSON.stringify(answer)))
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      t.after(() => server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      assert.equal((await millrace(['why', '--url', url])).code, code)
    })
  }

  test('ends with 14 where nobody answers, and says what that may mean', async () => {
    const server = createServer()
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as AddressInfo
    await new Promise((done) => server.close(done))
    const { code, stderr } = await millrace(['why', '--url', `http://127.0.0.1:${port}`])
    assert.equal(code, 14)
    assert.match(stderr, /does not answer \(ECONNREFUSED\): no process listens there/)
  })

  test('ends with 2 where it is used wrongly', async () => {
    assert.equal((await millrace(['why', '--url', 'ftp://pod'])).code, 2)
    assert.equal((await millrace(['why', '--nonsense'])).code, 2)
  })
})
