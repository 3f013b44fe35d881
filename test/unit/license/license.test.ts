import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { customer, dayMs, hourMs, idOf, keyOf, online, startMs, unreachable, world } from './support.ts'

const minuteMs = 60_000
const epoch = '1970-01-01T00:00:00.000Z'

describe('statuses', () => {
  test('NO_KEY from the first moment: fourteen fields, ready, nobody is asked (R45)', async () => {
    const w = world()
    const license = w.license([online])
    license.start()
    await w.timers.advance(hourMs)
    assert.deepEqual(license.state(), {
      status: 'NO_KEY',
      licenseId: null,
      tier: null,
      customerName: null,
      expiresAt: null,
      daysRemaining: 0,
      machinesUsed: 0,
      machinesAllowed: 0,
      lastValidatedAt: null,
      cachedJwtExpiresAt: null,
      heartbeatLastSuccessAt: null,
      consecutiveFailures: 0,
      graceRemainingSeconds: 0,
      modeOnline: false,
    })
    assert.equal(license.readiness().up, true)
    assert.deepEqual(w.asked, [])
  })

  test('PENDING for five minutes: epoch-zero timestamps and zero counts, ready (R23); then VALID', async () => {
    const w = world()
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(5 * minuteMs - 1)
    const { status, licenseId, customerName, tier, modeOnline, ...rest } = license.state()
    assert.deepEqual([status, licenseId, customerName, tier, modeOnline], ['PENDING', null, null, null, true])
    for (const value of Object.values(rest)) assert.ok(value === 0 || value === epoch, String(value))
    assert.deepEqual(w.asked, [])
    assert.equal(license.readiness().up, true)

    await w.timers.advance(2)
    const state = license.state()
    assert.equal(state.status, 'VALID')
    assert.equal(state.customerName, customer)
    assert.equal(state.tier, 'gold')
    assert.equal(state.daysRemaining, 364)
    assert.equal(state.machinesUsed, 1)
    assert.equal(state.machinesAllowed, 2)
    assert.equal(state.modeOnline, true)
    assert.equal(state.expiresAt, '2027-01-01T00:00:00.000Z')
    assert.equal(state.lastValidatedAt, state.heartbeatLastSuccessAt)
    assert.equal(Date.parse(state.cachedJwtExpiresAt as string) - startMs, dayMs + 5 * minuteMs)
    assert.deepEqual(w.asked, ['https://license.example/v1/activate'])
  })

  test('offline: VALID without a server, EXPIRED at its end to the millisecond', async () => {
    const w = world()
    const license = w.license([`license.key=${await keyOf(w, 2)}`])
    license.start()
    await w.timers.advance(hourMs)
    const { status, modeOnline, heartbeatLastSuccessAt, cachedJwtExpiresAt } = license.state()
    assert.deepEqual([status, modeOnline, heartbeatLastSuccessAt, cachedJwtExpiresAt], ['VALID', false, null, null])
    await w.timers.advance(2 * dayMs - hourMs - 1)
    assert.equal(license.state().status, 'VALID')
    w.clock.advance(1)
    assert.equal(license.state().status, 'EXPIRED')
    assert.equal(license.readiness().up, false)
    assert.match(license.readiness().reason as string, /EXPIRED: it has expired/)
    assert.deepEqual(w.asked, [])
  })

  test('an outage: VALID while the answer lasts, then GRACE_PERIOD, then EXPIRED, then VALID again', async () => {
    const w = world({ leaseMs: 6 * hourMs })
    const license = w.license([`license.key=${await keyOf(w)}`, online, 'license.grace-period=12h'])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'VALID')
    w.wire = unreachable
    await w.timers.advance(5 * hourMs)
    assert.equal(license.state().status, 'VALID')
    assert.ok(license.state().consecutiveFailures >= 4)
    await w.timers.advance(hourMs)
    assert.equal(license.state().status, 'GRACE_PERIOD')
    assert.ok(Math.abs(license.state().graceRemainingSeconds - 12 * 3600) < 120)
    assert.equal(license.readiness().up, true)
    await w.timers.advance(12 * hourMs)
    assert.equal(license.state().status, 'EXPIRED')
    assert.equal(license.state().graceRemainingSeconds, 0)
    assert.equal(license.readiness().up, false)
    w.wire = (_url, _init, serve) => serve()
    await w.timers.advance(hourMs)
    assert.equal(license.state().status, 'VALID')
    assert.equal(license.state().consecutiveFailures, 0)
  })

  test('a first activation that cannot be made gives GRACE_PERIOD, and a restart does not begin it anew', async () => {
    const w = world()
    w.wire = unreachable
    const settings = [`license.key=${await keyOf(w)}`, online, 'license.grace-period=10h']
    const first = w.license(settings)
    first.start()
    await w.timers.advance(6 * hourMs)
    assert.equal(first.state().status, 'GRACE_PERIOD')
    await first.stop()
    const second = w.license(settings)
    second.start()
    await w.timers.advance(hourMs)
    assert.equal(second.state().status, 'GRACE_PERIOD')
    assert.ok(second.state().graceRemainingSeconds < 3.2 * 3600)
    await w.timers.advance(4 * hourMs)
    assert.equal(second.state().status, 'EXPIRED')
  })

  test('REVOKED by the server, remembered across a restart without the server, and undone by it', async () => {
    const w = world()
    const key = await keyOf(w)
    const settings = [`license.key=${key}`, online]
    const first = w.license(settings)
    first.start()
    await w.timers.advance(6 * minuteMs)
    w.server.change(idOf(key), { revoked: true })
    await w.timers.advance(2 * hourMs)
    assert.equal(first.state().status, 'REVOKED')
    assert.equal(first.readiness().up, false)
    await first.stop()
    w.wire = unreachable
    const second = w.license(settings)
    second.start()
    assert.equal(second.state().status, 'PENDING')
    await w.timers.advance(6 * minuteMs)
    assert.equal(second.state().status, 'REVOKED')
    w.wire = (_url, _init, serve) => serve()
    w.server.change(idOf(key), { revoked: false })
    await w.timers.advance(2 * hourMs)
    assert.equal(second.state().status, 'VALID')
  })

  test('more machines than allowed: INVALID until a seat is free; stopping gives the seat back', async () => {
    const w = world()
    const key = await keyOf(w, 365, 1)
    const machine = (name: string) =>
      w.license([`license.key=${key}`, online, `license.machine-id=${name}`, `license.cache-file=${w.folder}/${name}`])
    const a = machine('a')
    const b = machine('b')
    a.start()
    await w.timers.advance(6 * minuteMs)
    b.start()
    await w.timers.advance(6 * minuteMs)
    assert.deepEqual([a.state().status, b.state().status], ['VALID', 'INVALID'])
    assert.match(b.readiness().reason as string, /all machines/)
    assert.equal(b.state().machinesAllowed, 1)
    await a.stop()
    assert.deepEqual(w.server.seats(idOf(key)), [])
    await w.timers.advance(2 * hourMs)
    assert.equal(b.state().status, 'VALID')
  })

  test('a license that the server has extended goes on beyond the end in its key', async () => {
    const w = world()
    const key = await keyOf(w, 3)
    const license = w.license([`license.key=${key}`, online])
    license.start()
    await w.timers.advance(4 * dayMs)
    assert.equal(license.state().status, 'EXPIRED')
    w.server.change(idOf(key), { expiresAtMs: startMs + 40 * dayMs })
    await w.timers.advance(2 * hourMs)
    assert.equal(license.state().status, 'VALID')
    assert.equal(license.state().daysRemaining, 35)
  })

  test('not yet valid: INVALID, and VALID once it counts', async () => {
    const w = world()
    const key = await w.server.issue({
      customer,
      expiresAtMs: startMs + 90 * dayMs,
      notBeforeMs: startMs + dayMs,
    })
    const license = w.license([`license.key=${key}`])
    license.start()
    await w.timers.advance(hourMs)
    assert.equal(license.state().status, 'INVALID')
    await w.timers.advance(dayMs + hourMs)
    assert.equal(license.state().status, 'VALID')
  })

  test('what is no license key is INVALID also while the public keys cannot be read', async () => {
    for (const garbage of ['garbage', 'a.b.c', `${'x'.repeat(40)}.${'y'.repeat(40)}.${'z'.repeat(40)}`]) {
      const w = world()
      const license = w.license([`license.key=${garbage}`, 'license.public-keys=/nowhere/keys.json'])
      license.start()
      await w.timers.advance(6 * minuteMs)
      assert.equal(license.state().status, 'INVALID', garbage)
      assert.match(license.readiness().reason as string, /the license key does not count/)
    }
  })

  test('no public keys: INVALID with the key to set; nothing of the unverified key is shown', async () => {
    const w = world()
    const license = w.license([`license.key=${await keyOf(w)}`, 'license.public-keys='])
    license.start()
    await w.timers.advance(hourMs)
    const { status, customerName, licenseId, machinesAllowed } = license.state()
    assert.deepEqual([status, customerName, licenseId, machinesAllowed], ['INVALID', null, null, 0])
    assert.match(license.readiness().reason as string, /license\.public-keys/)
  })
})

describe('the log', () => {
  test('warns at 30, 14, 7 and 1 days, once each, and anew after a renewal', async () => {
    const w = world()
    const key = await keyOf(w, 40)
    const license = w.license([`license.key=${key}`, online, 'license.heartbeat-interval=12h'])
    license.start()
    await w.timers.advance(39.5 * dayMs)
    const warnings = w.log.filter((line) => line.includes('expires in')).map((line) => /in (\d+) day/.exec(line)?.[1])
    assert.deepEqual(warnings, ['30', '14', '7', '1'])
    w.server.change(idOf(key), { expiresAtMs: startMs + 80 * dayMs })
    w.log.length = 0
    await w.timers.advance(40 * dayMs)
    assert.equal(w.log.filter((line) => line.includes('expires in')).length, 4)
  })

  test('a start with few days left warns once, for the nearest', async () => {
    const w = world()
    const license = w.license([`license.key=${await keyOf(w, 5)}`])
    license.start()
    await w.timers.advance(dayMs)
    assert.equal(w.log.filter((line) => line.includes('expires in 5 days')).length, 1)
    assert.equal(w.log.filter((line) => line.includes('expires in')).length, 1)
  })

  test('customer, license id and key appear in the state alone', async () => {
    const w = world({ leaseMs: hourMs })
    const key = await keyOf(w, 8)
    const license = w.license([`license.key=${key}`, online, 'license.grace-period=1h'])
    const seen: string[] = []
    const look = () => seen.push(JSON.stringify(license.readiness()))
    license.start()
    await w.timers.advance(hourMs, look)
    w.wire = unreachable
    await w.timers.advance(dayMs, look)
    w.wire = (_url, _init, serve) => serve()
    w.server.change(idOf(key), { revoked: true })
    await w.timers.advance(dayMs, look)
    const all = [...seen, ...w.log].join('\n')
    assert.ok(all.includes('REVOKED') && all.includes('GRACE_PERIOD'))
    for (const secret of [customer, idOf(key), key]) assert.ok(!all.includes(secret))
    assert.equal(license.state().customerName, customer)
  })
})

test('heartbeats are spread, retries back off up to the interval, Retry-After is heeded', async () => {
  const w = world()
  const license = w.license([`license.key=${await keyOf(w)}`, online, 'license.heartbeat-interval=16h'])
  const times: number[] = []
  w.wire = (_url, _init, serve) => {
    times.push(w.clock.monotonic())
    return serve()
  }
  license.start()
  await w.timers.advance(10 * dayMs)
  const gaps = times.slice(1).map((at, i) => at - (times[i] as number))
  assert.ok(gaps.every((gap) => gap >= 14.4 * hourMs && gap <= 17.6 * hourMs))
  assert.ok(new Set(gaps).size > 1)
  times.length = 0
  w.wire = () => {
    times.push(w.clock.monotonic())
    return unreachable()
  }
  await w.timers.advance(5 * dayMs)
  const retries = times.slice(1).map((at, i) => at - (times[i] as number))
  retries.slice(0, 5).forEach((gap, i) => {
    const full = Math.min(16, 2 ** i) * hourMs
    assert.ok(gap >= full / 2 && gap <= full, `retry ${i} after ${gap / hourMs} h`)
  })
  times.length = 0
  w.wire = async () => {
    times.push(w.clock.monotonic())
    return new Response('', { status: 503, headers: { 'retry-after': '57600' } })
  }
  await w.timers.advance(4 * dayMs)
  assert.ok(times.slice(1).every((at, i) => at - (times[i] as number) >= 16 * hourMs))
})
