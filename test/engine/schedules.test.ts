/** Scheduled sources on the running engine: on their grid, in order, once, and on from where they were. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { engineIndex } from '../../src/base/counters.ts'
import { eventually } from '../support/millrace.ts'
import type { Firing } from './apps/slow-ticking.ts'
import { byKey, lastByKey, TestEngine } from './support/engine.ts'

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

describe('a scheduled source', () => {
  test('fires on a grid, counts from 0 without a gap, and its records reach the state of their key', async (t) => {
    const engine = await TestEngine.start(t, 'ticking', { 'engine.lanes.count': 3 })
    await eventually('all three fire', async () => {
      const ticks = byKey(await engine.read('ticks'))
      return (ticks['often-0']?.length ?? 0) > 10 && (ticks.later?.length ?? 0) > 5 && (ticks.cron?.length ?? 0) > 1
    })
    await engine.put('others', [{ key: 'other', value: 1 }])
    await engine.idle()
    await engine.stop()
  })

  test('goes on after a restart: no count twice, none left out, whatever was under way', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-ticks-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = { 'broker.bootstrap-servers': `embedded:${folder}` }
    let seen = 0
    for (let life = 0; life < 3; life++) {
      const engine = await TestEngine.start(t, 'ticking', config)
      const enough = seen + 8
      await eventually('it goes on', async () => (byKey(await engine.read('ticks'))['often-0']?.length ?? 0) > enough)
      const ticks = await engine.read('ticks')
      const values = byKey<number>(ticks)
      for (const [key, counts] of Object.entries(values)) assert.deepEqual(counts, upTo(counts.length), key)
      const times = ticks.filter((tick) => tick.key === 'often-1').map((tick) => tick.timestamp)
      for (let i = 1; i < times.length; i++) {
        const step = (times[i] as number) - (times[i - 1] as number)
        assert.ok(step > 0 && step % 50 === 0, `firings lie on the grid: ${step}`)
      }
      const counts = lastByKey<number>(await engine.read('tick-counts'))
      // Read later: there may be any number more by now.
      assert.ok((counts['often-0'] ?? 0) >= (values['often-0'] ?? []).length - 2)
      seen = (values['often-0'] ?? []).length
      assert.equal(await engine.stop(), 0)
    }
  })

  test('rests while the application is paused', async (t) => {
    const engine = await TestEngine.start(t, 'ticking')
    await eventually('it fires', async () => (await engine.read('ticks')).length > 10)
    assert.ok(engine.runtime.commands.pause().ok)
    await engine.reaches('PAUSED')
    const before = (await engine.read('ticks')).length
    await sleep(400)
    assert.equal((await engine.read('ticks')).length, before)
    assert.ok(engine.runtime.commands.unpause().ok)
    await eventually('it fires again', async () => (await engine.read('ticks')).length > before)
    for (const counts of Object.values(byKey<number>(await engine.read('ticks'))))
      assert.deepEqual(counts, upTo(counts.length))
  })

  test('takes no answer for another firing that was called before a pause, and calls its function once at a time', async (t) => {
    const engine = await TestEngine.start(t, 'slow-ticking')
    const ticks = async (): Promise<Firing[]> => (await engine.read('ticks')).map(({ value }) => value as Firing)
    await eventually('it fires', async () => (await ticks()).length >= 2)
    engine.runtime.commands.pause()
    await engine.reaches('PAUSED')
    await sleep(200)
    engine.runtime.commands.unpause()
    const before = (await ticks()).length
    await eventually('it goes on', async () => (await ticks()).length >= before + 3)
    const told = await ticks()
    for (const [i, { called }] of told.entries()) assert.ok(i === 0 || called >= (told[i - 1] as Firing).answered - 1)
    const kept = (await engine.read('slow-ticking-schedules-changelog')).map(
      ({ value }) => (value as { lastMs: number }).lastMs,
    )
    for (const { scheduledAt } of told) assert.ok(kept.includes(scheduledAt), `no firing of ${scheduledAt} is noted`)
  })

  test('is refused where an application may spread over processes', async (t) => {
    await assert.rejects(
      TestEngine.start(t, 'ticking', { 'topology.sub-topology-split': 'repartition-topics' }),
      /scheduled source often runs in one process only/,
    )
  })
})

test('the wall clock calls no processor while the application is paused, nor behind a restart in place', async (t) => {
  const engine = await TestEngine.start(t, 'clocked', { 'broker.embedded.partitions': 1 })
  const told = async (): Promise<Record<string, number[]>> => byKey<number>(await engine.read('out'))
  const ticks = async (): Promise<number> => (await told()).tick?.length ?? 0
  await eventually('it fires', async () => (await ticks()) > 5)
  assert.ok(engine.runtime.commands.pause().ok)
  await engine.reaches('PAUSED')
  const rests = async (): Promise<void> => {
    const before = await ticks()
    await engine.put('in', [{ key: 'k', value: 1 }])
    await sleep(400)
    assert.equal(await ticks(), before)
  }
  await rests()
  assert.ok(engine.runtime.commands.unpause().ok)
  await eventually('it fires again, and the records go on', async () => (await told()).k?.length === 1)
  const before = await ticks()
  await eventually('it goes on firing', async () => (await ticks()) > before + 3)
  await engine.put('in', [{ key: 'fails', value: Date.now() + 1500 }])
  await sleep(100)
  assert.ok(engine.runtime.commands.pause().ok)
  await eventually('it restarts', async () => (engine.runtime.view.counters()?.engine[engineIndex.restarts] ?? 0) > 0)
  await engine.reaches('PAUSED')
  await rests()
  await sleep(1500)
  assert.ok(engine.runtime.commands.unpause().ok)
  await eventually('what failed goes on', async () => (await told()).fails?.length === 1)
  for (const counts of Object.values(await told())) assert.deepEqual(counts, upTo(counts.length))
})
