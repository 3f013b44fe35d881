import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { LicenseServer, newSigningKey } from '../../examples/license-server/server.ts'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createLicense, type License } from '../../src/license/license.ts'
import { eventually } from '../support/millrace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-license-server-'))
after(() => rmSync(folder, { recursive: true }))
const dayMs = 86_400_000
let names = 0

async function until(license: License, status: string): Promise<void> {
  const deadline = performance.now() + 60_000
  while (license.state().status !== status) {
    assert.ok(performance.now() < deadline, `the status stays ${license.state().status} and does not become ${status}`)
    await sleep(10)
  }
}

function licenseWith(settings: Readonly<Record<string, unknown>>): License {
  return createLicense({
    config: loadConfig({
      application: {
        'license.activation-delay': 50,
        'license.heartbeat-interval': 200,
        'license.cache-file': join(folder, `cache-${++names}.json`),
        ...settings,
      },
    }),
    clock: systemClock,
    random: new Random(1),
    log: () => undefined,
  })
}

function idOf(key: string): string {
  return JSON.parse(Buffer.from(key.split('.')[1] as string, 'base64url').toString()).jti
}

describe('against the reference server over a socket', () => {
  test('activate, heartbeat, revoke, restore, deactivate; public keys by address', async () => {
    const server = new LicenseServer({ signingKey: await newSigningKey() })
    const url = await server.listen()
    const key = await server.issue({ customer: 'X', machines: 2, expiresAtMs: Date.now() + 90 * dayMs })
    const license = licenseWith({
      'license.key': key,
      'license.server-url': `${url}/`,
      'license.public-keys': `${url}/v1/keys`,
    })
    license.start()
    assert.equal(license.state().status, 'PENDING')
    await until(license, 'VALID')
    assert.equal(license.state().machinesUsed, 1)
    server.change(idOf(key), { revoked: true })
    await until(license, 'REVOKED')
    server.change(idOf(key), { revoked: false })
    await until(license, 'VALID')
    assert.equal(server.seats(idOf(key)).length, 1)
    await license.stop()
    assert.equal(server.seats(idOf(key)).length, 0)
    await server.close()
  })

  test('GRACE_PERIOD while it is away, then EXPIRED, and VALID when it is back', async () => {
    const signingKey = await newSigningKey()
    const path = join(folder, 'keys.json')
    const first = new LicenseServer({ signingKey, leaseMs: 500 })
    writeFileSync(path, JSON.stringify(first.jwks()))
    const url = await first.listen()
    const key = await first.issue({ customer: 'X', expiresAtMs: Date.now() + 90 * dayMs })
    const license = licenseWith({
      'license.key': key,
      'license.server-url': url,
      'license.public-keys': path,
      'license.grace-period': 1500,
    })
    license.start()
    await until(license, 'VALID')
    await first.close()
    await until(license, 'GRACE_PERIOD')
    assert.ok(license.state().consecutiveFailures > 0)
    await until(license, 'EXPIRED')
    // The second process of a server knows nothing of the first one's licenses unless it shares the store.
    const second = new LicenseServer({ signingKey, leaseMs: 60_000 })
    await second.listen(Number(new URL(url).port))
    await until(license, 'INVALID')
    assert.match(license.readiness().reason as string, /does not know this license/)
    await license.stop()
    await second.close()
  })

  test('a server that redirects, stalls or hangs up decides nothing, and the place it points to is not asked', async () => {
    let tempted = 0
    const temptation = createServer((_request, response) => {
      tempted++
      response.end('{}')
    })
    await new Promise<void>((resolve) => temptation.listen(0, '127.0.0.1', resolve))
    const address = temptation.address() as { readonly port: number }
    let asked = 0
    const hostile = createServer((request, response) => {
      asked++
      if (asked % 2 === 0) request.socket.destroy()
      else response.writeHead(307, { location: `http://127.0.0.1:${address.port}/` }).end()
    })
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve))
    const signingKey = await newSigningKey()
    const issuer = new LicenseServer({ signingKey })
    const path = join(folder, 'keys-2.json')
    writeFileSync(path, JSON.stringify(issuer.jwks()))
    const license = licenseWith({
      'license.key': await issuer.issue({ customer: 'X', expiresAtMs: Date.now() + dayMs }),
      'license.server-url': `http://user:word@127.0.0.1:${(hostile.address() as { readonly port: number }).port}`,
      'license.public-keys': path,
    })
    license.start()
    await until(license, 'GRACE_PERIOD')
    await eventually('it is asked four times', () => asked >= 4)
    assert.equal(license.state().status, 'GRACE_PERIOD')
    assert.equal(tempted, 0)
    await license.stop()
    hostile.close()
    temptation.close()
  })

  test('the server answers nonsense with an error and stays up', async () => {
    const server = new LicenseServer({ signingKey: await newSigningKey() })
    const url = await server.listen()
    const status = async (path: string, init?: RequestInit) => (await fetch(url + path, init)).status
    assert.equal(await status('/'), 404)
    assert.equal(await status('/v1/activate'), 405)
    assert.equal(await status('/v1/activate', { method: 'POST', body: 'x' }), 400)
    assert.equal(await status('/v1/activate', { method: 'POST', body: '{"key":5}' }), 400)
    assert.equal(await status('/v1/activate', { method: 'POST', body: 'x'.repeat(100_000) }), 400)
    const ask = { key: 'a.b.c', machineId: 'm', nonce: 'n', product: 'millrace' }
    const answer = await fetch(`${url}/v1/activate`, { method: 'POST', body: JSON.stringify(ask) })
    const { token } = (await answer.json()) as { readonly token: string }
    const claims = JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString())
    assert.equal(claims.status, 'UNKNOWN_LICENSE')
    await server.close()
  })
})

test('the command of the example: issue, keys, serve, revoke', async () => {
  const main = new URL('../../examples/license-server/main.ts', import.meta.url).pathname
  const data = join(folder, 'data')
  const run = async (...args: string[]) =>
    (await promisify(execFile)(process.execPath, [main, ...args, '--data', data])).stdout.trim()
  const key = await run('issue', '--customer', 'Example Ltd', '--machines', '3', '--days', '30')
  const path = join(folder, 'public-keys.json')
  writeFileSync(path, await run('keys'))
  assert.ok(!(await run('keys')).includes('"d"'), 'the private half is never printed')
  const server = spawn(process.execPath, [main, 'serve', '--port', '0', '--data', data])
  try {
    const url = await new Promise<string>((resolve, reject) => {
      server.once('exit', () => reject(new Error('the server ended')))
      server.stdout.once('data', (text: Buffer) => resolve(/http:\S+/.exec(text.toString())?.[0] ?? ''))
    })
    const license = licenseWith({ 'license.key': key, 'license.server-url': url, 'license.public-keys': path })
    license.start()
    await until(license, 'VALID')
    assert.equal(license.state().machinesAllowed, 3)
    await run('revoke', '--id', idOf(key))
    await until(license, 'REVOKED')
    await license.stop()
  } finally {
    server.kill()
  }
  await assert.rejects(run('revoke', '--id', 'none'), /no license of that id/)
  await assert.rejects(run('what'), /Usage/)
})
