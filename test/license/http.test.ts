/** Each of the seven statuses, reached with the reference server over a socket, as the HTTP interface shows it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LicenseServer, newSigningKey } from '../../examples/license-server/server.ts'
import { startLicensed } from './licensed.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-license-http-'))
after(() => rmSync(folder, { recursive: true }))
const dayMs = 86_400_000
const epoch = '1970-01-01T00:00:00.000Z'
const customer = 'Canary Customer Ltd'
const signingKey = await newSigningKey()
const keysFile = join(folder, 'keys.json')
let count = 0

const fields = [
  'status',
  'licenseId',
  'tier',
  'customerName',
  'expiresAt',
  'daysRemaining',
  'machinesUsed',
  'machinesAllowed',
  'lastValidatedAt',
  'cachedJwtExpiresAt',
  'heartbeatLastSuccessAt',
  'consecutiveFailures',
  'graceRemainingSeconds',
  'modeOnline',
]
type Shown = Readonly<Record<string, string | number | boolean | null>>

interface World {
  readonly server: LicenseServer
  readonly key: string
  readonly id: string
  ask(path: string): Promise<{ readonly status: number; readonly text: string }>
  license(): Promise<Shown>
  becomes(status: string): Promise<Shown>
}

/** Starts server and application, runs the steps, and holds at each look that nothing but `/license` names names. */
async function withLicense(settings: Readonly<Record<string, unknown>>, steps: (world: World) => Promise<void>) {
  const server = new LicenseServer({ signingKey, leaseMs: 700 })
  writeFileSync(keysFile, JSON.stringify(server.jwks()))
  const url = await server.listen()
  const key = await server.issue({ customer, tier: 'gold', machines: 1, expiresAtMs: Date.now() + 60 * dayMs })
  const id: string = JSON.parse(Buffer.from(key.split('.')[1] as string, 'base64url').toString()).jti
  const application = await startLicensed({
    'license.key': key,
    'license.server-url': url,
    'license.public-keys': keysFile,
    'license.activation-delay': 100,
    'license.heartbeat-interval': 200,
    'license.grace-period': '1h',
    'license.cache-file': join(folder, `cache-${++count}.json`),
    ...settings,
  })
  const ask = async (path: string) => {
    const response = await fetch(application.url + path)
    return { status: response.status, text: await response.text() }
  }
  const license = async (): Promise<Shown> => {
    const { status, text } = await ask('/license')
    assert.equal(status, 200)
    const shown = JSON.parse(text) as Shown
    assert.deepEqual(Object.keys(shown), fields)
    return shown
  }
  const becomes = async (status: string): Promise<Shown> => {
    const deadline = performance.now() + 60_000
    for (;;) {
      const shown = await license()
      if (shown.status === status) return shown
      assert.ok(performance.now() < deadline, `the status stays ${shown.status} and does not become ${status}`)
      await sleep(10)
    }
  }
  try {
    await steps({ server, key, id, ask, license, becomes })
    for (const path of ['/health/live', '/health/ready', '/metrics', '/info', '/config', '/state']) {
      const { text } = await ask(path)
      for (const secret of [customer, id, key]) assert.ok(!text.includes(secret), `${path} tells ${secret}`)
    }
    for (const secret of [customer, id, key]) assert.ok(!application.log.join('\n').includes(secret), 'the log')
  } finally {
    await application.stop()
    await server.close()
  }
}

/** Liveness is UP whatever the license; readiness as given; the gauge names this status alone. */
async function holds(world: World, status: string, ready: 200 | 503): Promise<void> {
  const live = await world.ask('/health/live')
  assert.equal(live.status, 200)
  assert.ok(!live.text.includes('"license"'))
  const probe = await world.ask('/health/ready')
  assert.equal(probe.status, ready, probe.text)
  const report = JSON.parse(probe.text) as { status: string; components: Array<{ name: string; status: string }> }
  const component = report.components.find(({ name }) => name === 'license')
  assert.equal(component?.status, ready === 200 ? 'UP' : 'DOWN')
  assert.equal(report.status, ready === 200 ? 'UP' : 'DOWN')
  // A scrape may be a second old.
  const deadline = performance.now() + 60_000
  for (;;) {
    const { text } = await world.ask('/metrics')
    const ones = [...text.matchAll(/^engine_license_status\{status="(\w+)"\} 1$/gm)].map((match) => match[1])
    assert.equal(ones.length, 1)
    if (ones[0] === status) return
    assert.ok(performance.now() < deadline, `the gauge shows ${ones[0]}, not ${status}`)
    await sleep(50)
  }
}

test('NO_KEY: ready, all fields, nothing in them', async () => {
  await withLicense({ 'license.key': null }, async (world) => {
    const { status, modeOnline, ...rest } = await world.license()
    assert.deepEqual([status, modeOnline], ['NO_KEY', false])
    for (const value of Object.values(rest)) assert.ok(value === null || value === 0)
    await holds(world, 'NO_KEY', 200)
  })
})

test('PENDING: ready, epoch-zero timestamps, zero counts', async () => {
  await withLicense({ 'license.activation-delay': '5m' }, async (world) => {
    const shown = await world.license()
    assert.equal(shown.status, 'PENDING')
    for (const field of ['expiresAt', 'lastValidatedAt', 'cachedJwtExpiresAt', 'heartbeatLastSuccessAt']) {
      assert.equal(shown[field], epoch, field)
    }
    for (const field of [
      'daysRemaining',
      'machinesUsed',
      'machinesAllowed',
      'consecutiveFailures',
      'graceRemainingSeconds',
    ]) {
      assert.equal(shown[field], 0, field)
    }
    await holds(world, 'PENDING', 200)
    const { text } = await world.ask('/metrics')
    assert.match(text, /^engine_license_expires_timestamp_seconds 0$/m)
  })
})

test('VALID, then GRACE_PERIOD while the server is away: both ready', async () => {
  await withLicense({}, async (world) => {
    const valid = await world.becomes('VALID')
    assert.equal(valid.customerName, customer)
    assert.equal(valid.licenseId, world.id)
    assert.equal(valid.tier, 'gold')
    assert.deepEqual([valid.machinesUsed, valid.machinesAllowed, valid.modeOnline], [1, 1, true])
    assert.equal(valid.daysRemaining, 59)
    await holds(world, 'VALID', 200)
    await world.server.close()
    const grace = await world.becomes('GRACE_PERIOD')
    assert.ok(Number(grace.graceRemainingSeconds) > 3500 && Number(grace.graceRemainingSeconds) <= 3600)
    assert.ok(Number(grace.consecutiveFailures) > 0)
    await holds(world, 'GRACE_PERIOD', 200)
  })
})

test('EXPIRED by its end and by the end of grace: not ready, alive', async () => {
  await withLicense({}, async (world) => {
    await world.becomes('VALID')
    world.server.change(world.id, { expiresAtMs: Date.now() - 1000 })
    const shown = await world.becomes('EXPIRED')
    assert.equal(shown.daysRemaining, 0)
    await holds(world, 'EXPIRED', 503)
  })
  await withLicense({ 'license.grace-period': 300 }, async (world) => {
    await world.becomes('VALID')
    await world.server.close()
    await world.becomes('EXPIRED')
    await holds(world, 'EXPIRED', 503)
  })
})

test('REVOKED: not ready, alive; ready again when the server takes it back', async () => {
  await withLicense({}, async (world) => {
    await world.becomes('VALID')
    world.server.change(world.id, { revoked: true })
    await world.becomes('REVOKED')
    await holds(world, 'REVOKED', 503)
    world.server.change(world.id, { revoked: false })
    await world.becomes('VALID')
    await holds(world, 'VALID', 200)
  })
})

test('INVALID: a forged key tells nothing of itself; not ready, alive', async () => {
  const stranger = new LicenseServer({ signingKey: await newSigningKey() })
  const forged = await stranger.issue({ customer, expiresAtMs: Date.now() + dayMs })
  await withLicense({ 'license.key': forged }, async (world) => {
    const shown = await world.becomes('INVALID')
    assert.deepEqual([shown.customerName, shown.licenseId, shown.machinesAllowed], [null, null, 0])
    await holds(world, 'INVALID', 503)
    const { error } = JSON.parse((await world.ask('/health/ready')).text) as { error?: string }
    assert.match(error ?? '', /^not ready: the license is INVALID: the license key does not count: .*[^.]$/)
  })
})
