import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineError } from '../../../src/base/errors.ts'
import { inspectLicense } from '../../../src/license/inspect.ts'
import { customer, dayMs, startMs, world } from './support.ts'

test('prints what a key says and whether it would count', async () => {
  const { server } = world()
  const key = await server.issue({ customer, tier: 'gold', machines: 3, expiresAtMs: startMs + 10 * dayMs })
  const unverified = await inspectLicense(`${key}\n`, { nowMs: startMs })
  assert.match(unverified, /^customer +Canary Customer Ltd$/m)
  assert.match(unverified, /^tier +gold$/m)
  assert.match(unverified, /^machines +3$/m)
  assert.match(unverified, /^expires +2026-01-11T00:00:00\.000Z \(in 10 days\)$/m)
  assert.match(unverified, /^verdict +not verified: no public keys were given$/m)
  const publicKeys = JSON.stringify(server.jwks())
  assert.match(await inspectLicense(key, { nowMs: startMs, publicKeys }), /^verdict +genuine$/m)
  assert.match(
    await inspectLicense(key, { nowMs: startMs + 11 * dayMs, publicKeys }),
    /^verdict +genuine, but expired$/m,
  )
  assert.match(await inspectLicense(key, { nowMs: startMs, publicKeys, audience: 'other' }), /another audience/)
})

test('a forged key is shown for what it is, and writes nothing to the terminal that it should not', async () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const key = `${encode({ alg: 'none' })}.${encode({ customer: 'a\u001b[2Jb', x: 1 })}.AAAA`
  const text = await inspectLicense(key, { nowMs: startMs })
  assert.match(text, /does not count: its algorithm/)
  assert.ok(!text.includes('\u001b'))
})

test('what is no token is a usage error in one sentence', async () => {
  for (const text of ['', 'abc', 'a.b.c']) {
    await assert.rejects(
      inspectLicense(text, { nowMs: startMs }),
      (error) => EngineError.is(error) && error.code === 'USAGE',
    )
  }
})

test('public keys that are none are a usage error in one sentence', async () => {
  const { server } = world()
  const key = await server.issue({ customer, tier: 'gold', machines: 3, expiresAtMs: startMs + 10 * dayMs })
  const pem = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n'
  for (const publicKeys of ['', '{"keys": [', '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"!"}]}', pem]) {
    await assert.rejects(
      inspectLicense(key, { nowMs: startMs, publicKeys }),
      (error) => EngineError.is(error) && error.code === 'USAGE' && /public keys .*; give a JWKS/.test(error.message),
      publicKeys,
    )
  }
})
