import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import type { License } from '../../src/license/license.ts'
import { customer, dayMs, hourMs, online, startMs, unreachable, world } from '../unit/license/support.ts'

const activationMs = 300_000

/** Outages of every length, restarts, revocation, wall clocks gone wrong; the model knows only what the server answered. */
for (const seed of [1, 2, 3]) {
  test(`a year with outages, seed ${seed}: at every moment the status is what the answers so far allow`, async () => {
    const random = new Random(seed)
    const leaseMs = 2 * dayMs
    const graceMs = 5 * dayMs
    const w = world({ leaseMs })
    const endMs = startMs + 330 * dayMs
    const key = await w.server.issue({ customer, machines: 1, expiresAtMs: endMs })
    const id = JSON.parse(Buffer.from(key.split('.')[1] as string, 'base64url').toString()).jti as string
    const settings = [`license.key=${key}`, online, 'license.heartbeat-interval=12h', 'license.grace-period=5d']

    let answer: { readonly atMs: number; readonly revoked: boolean } | undefined
    let revoked = false
    let down = false
    w.wire = async (url, _init, serve) => {
      if (down) return await unreachable()
      const response = await serve()
      if (!url.endsWith('deactivate')) answer = { atMs: trueNow(), revoked }
      return response
    }
    const trueNow = () => startMs + w.clock.monotonic()
    let bornAt = 0
    const expected = (): string => {
      if (w.clock.monotonic() < bornAt + activationMs) return 'PENDING'
      if (answer?.revoked) return 'REVOKED'
      const now = trueNow()
      if (now >= endMs) return 'EXPIRED'
      if (answer === undefined) return 'GRACE_PERIOD'
      // Tokens count in whole seconds.
      const covered = Math.ceil((answer.atMs + leaseMs) / 1000) * 1000
      return now < covered ? 'VALID' : now < covered + graceMs ? 'GRACE_PERIOD' : 'EXPIRED'
    }
    let license: License = w.license(settings)
    license.start()
    const seen = new Set<string>()
    let last = ''
    let checks = 0
    const check = (): void => {
      const { up, details } = license.readiness()
      const status = expected()
      if (details.status !== status) assert.equal(details.status, status, `after ${w.clock.monotonic() / dayMs} days`)
      assert.equal(up, !['EXPIRED', 'REVOKED', 'INVALID'].includes(status))
      if (status === 'GRACE_PERIOD') assert.ok((details.graceRemainingSeconds as number) <= graceMs / 1000)
      seen.add(status)
      // The whole state, with its dates as text, where it changes and once in an hour.
      if (status !== last || checks % 60 === 0) assert.equal(license.state().status, status)
      last = status
      checks++
    }
    while (trueNow() < startMs + 365 * dayMs) {
      const dice = random.int(10)
      if (dice < 4) down = random.chance(0.6)
      else if (dice === 4) {
        await license.stop()
        license = w.license(settings)
        bornAt = w.clock.monotonic()
        license.start()
      } else if (dice === 5) {
        // Never ahead of the truth: a clock that runs ahead ends a license early, and rightly so.
        w.clock.jump(startMs + w.clock.monotonic() - w.clock.now() - random.int(2) * random.int(40) * dayMs)
      } else if (dice === 6 && random.chance(0.2)) {
        revoked = !revoked
        w.server.change(id, { revoked })
      }
      await w.timers.advance((1 + random.int(100)) * hourMs, check)
    }
    assert.ok(checks > 100_000)
    for (const status of ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED']) assert.ok(seen.has(status), status)
  })
}
