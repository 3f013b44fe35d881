import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { LicenseCache } from '../../../src/license/cache.ts'
import { customer, dayMs, hourMs, keyOf, online, startMs, unreachable, type World, world } from './support.ts'

const minuteMs = 60_000

describe('the cache and the clock', () => {
  async function started(w: World, key: string): Promise<void> {
    const license = w.license([`license.key=${key}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'VALID')
    await license.stop()
    w.wire = unreachable
  }

  test('the cached answer carries a restart through an outage', async () => {
    const w = world()
    const key = await keyOf(w)
    await started(w, key)
    const license = w.license([`license.key=${key}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'VALID')
    assert.equal(license.state().customerName, customer)
    await w.timers.advance(dayMs)
    assert.equal(license.state().status, 'GRACE_PERIOD')
  })

  test('any change to the file is noticed: INVALID without the server, mended by it', async () => {
    for (const change of [
      (text: string) => text.replace(/"seenAtMs":\d+/, '"seenAtMs":5'),
      (text: string) => text.replace(/"lease":"[^"]+"/, '"lease":null'),
      (text: string) => text.replace(/("lease":"[^"]{40})./, '$1!'),
      (text: string) => text.slice(0, 100),
      () => 'null',
      () => '{"content":null}',
    ]) {
      const w = world()
      const key = await keyOf(w)
      await started(w, key)
      const path = join(w.folder, 'license.json')
      writeFileSync(path, change(readFileSync(path, 'utf8')))
      const license = w.license([`license.key=${key}`, online])
      license.start()
      await w.timers.advance(6 * minuteMs)
      assert.equal(license.state().status, 'INVALID')
      assert.ok(w.log.some((line) => line.includes('was changed by somebody else')))
      w.wire = (_url, _init, serve) => serve()
      await w.timers.advance(hourMs)
      assert.equal(license.state().status, 'VALID')
    }
  })

  test('a sealed file with the answer for another machine or license does not count', async () => {
    for (const ask of [{ machineId: 'other' }, { other: true }]) {
      const w = world()
      w.wire = unreachable
      const key = await keyOf(w)
      const asked = 'other' in ask ? await keyOf(w) : key
      const machineId = ask.machineId ?? 'm'
      const lease = await w.server.answer('activate', { key: asked, machineId, nonce: 'n', product: 'millrace' })
      const cache = new LicenseCache(join(w.folder, 'license.json'), key)
      cache.write({ machineId: 'm', lease, failingSinceMs: null, seenAtMs: startMs })
      const license = w.license([`license.key=${key}`, online, 'license.machine-id=m'])
      license.start()
      await w.timers.advance(6 * minuteMs)
      assert.equal(license.state().status, 'INVALID')
    }
  })

  test('a file of another license key gives the machine its identity and nothing else', async () => {
    const w = world()
    await started(w, await keyOf(w))
    const machine = (): string => JSON.parse(readFileSync(join(w.folder, 'license.json'), 'utf8')).content.machineId
    const before = machine()
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'GRACE_PERIOD')
    assert.equal(machine(), before)
  })

  test('a clock set back gains nothing, and is noticed, while running and across a restart', async () => {
    const w = world()
    const key = await keyOf(w, 10)
    const license = w.license([`license.key=${key}`])
    license.start()
    await w.timers.advance(9 * dayMs)
    w.clock.jump(-9 * dayMs)
    await w.timers.advance(minuteMs)
    assert.ok(w.log.some((line) => line.includes('clock of this machine is')))
    assert.equal(license.state().daysRemaining, 0)
    await w.timers.advance(dayMs)
    assert.equal(license.state().status, 'EXPIRED')
    await license.stop()
    w.log.length = 0
    const again = w.license([`license.key=${key}`])
    again.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(again.state().status, 'EXPIRED')
    assert.ok(w.log.some((line) => line.includes('clock of this machine is')))
  })

  test('a wall clock that runs ahead for a while does no lasting harm', async () => {
    const w = world()
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(hourMs)
    w.clock.jump(1000 * dayMs)
    assert.equal(license.state().status, 'EXPIRED')
    w.clock.jump(-1000 * dayMs)
    assert.equal(license.state().status, 'VALID')
  })

  test('after a start with a clock that runs ahead the log says what brings the right time back, and it does', async () => {
    const w = world()
    const key = await keyOf(w)
    w.clock.jump(1000 * dayMs)
    const early = w.license([`license.key=${key}`])
    early.start()
    await w.timers.advance(6 * minuteMs)
    w.clock.jump(-1000 * dayMs)
    await w.timers.advance(2 * minuteMs)
    assert.equal(early.state().status, 'EXPIRED')
    await early.stop()
    const file = join(w.folder, 'license.json')
    const advice = w.log.find((line) => line.includes('clock of this machine is')) ?? ''
    assert.ok(advice.includes('the later time, 2028-09-'), advice)
    assert.ok(advice.includes(`stop this process, delete ${file}, and start it again`), advice)
    rmSync(file)
    const again = w.license([`license.key=${key}`])
    again.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(again.state().status, 'VALID')
  })

  test('a folder that cannot be written is said once, and nothing else happens', async () => {
    const w = world()
    const license = w.license([
      `license.key=${await keyOf(w)}`,
      `license.cache-file=${w.folder}/keys.json/license.json`,
    ])
    license.start()
    await w.timers.advance(5 * hourMs)
    assert.equal(license.state().status, 'VALID')
    assert.equal(w.log.filter((line) => line.includes('cannot be remembered')).length, 1)
  })
})
