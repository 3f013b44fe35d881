import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { exportJWK, generateKeyPair, importJWK, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { parseKeys } from '../../../src/license/keys.ts'
import { leaseType, licenseType, type TokenRules, verifyLease, verifyLicenseKey } from '../../../src/license/token.ts'
import { signingKey } from './support.ts'

const privateKey = await importJWK(signingKey, 'EdDSA')
const { kty, crv, x } = signingKey
const publicJwk: JWK = { kty, crv, x, kid: signingKey.kid } as JWK
const keys = await parseKeys(JSON.stringify({ keys: [publicJwk] }))
const rules: TokenRules = { keys, audience: 'millrace', issuer: 'the-issuer' }

const goodClaims = {
  iss: 'the-issuer',
  aud: 'millrace',
  jti: 'L-1',
  customer: 'Example Ltd',
  tier: 'gold',
  machines: 3,
  iat: 1_700_000_000,
  nbf: 1_700_000_000,
  exp: 1_800_000_000,
}

async function sign(claims: object, header: object = {}, key: Parameters<SignJWT['sign']>[0] = privateKey) {
  return await new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'EdDSA', kid: signingKey.kid as string, typ: licenseType, ...header })
    .sign(key)
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a good key is opened', async () => {
  const verdict = await verifyLicenseKey(await sign(goodClaims), rules)
  assert.deepEqual(verdict, {
    ok: true,
    claims: {
      licenseId: 'L-1',
      customerName: 'Example Ltd',
      tier: 'gold',
      machinesAllowed: 3,
      issuedAtMs: 1_700_000_000_000,
      notBeforeMs: 1_700_000_000_000,
      expiresAtMs: 1_800_000_000_000,
    },
  })
})

test('ES256, keys as PEM, keys without ids, several keys, rotated keys', async () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const ed = createPublicKey({ key: publicJwk as never, format: 'jwk' })
  const pem = `${ec.publicKey.export({ type: 'spki', format: 'pem' })}${ed.export({ type: 'spki', format: 'pem' })}`
  const both: TokenRules = { ...rules, keys: await parseKeys(pem) }
  assert.deepEqual(
    both.keys.map((key) => key.algorithm),
    ['ES256', 'EdDSA'],
  )
  const token = await new SignJWT(goodClaims).setProtectedHeader({ alg: 'ES256' }).sign(ec.privateKey)
  assert.equal((await verifyLicenseKey(token, both)).ok, true)
  assert.equal((await verifyLicenseKey(await sign(goodClaims, { kid: undefined }), both)).ok, true)
})

test('a key set keeps only public Ed25519 and P-256 signature keys, and never more than its public half', async () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const parsed = await parseKeys(
    JSON.stringify({
      keys: [
        rsa.publicKey.export({ format: 'jwk' }),
        { kty: 'oct', k: 'c2VjcmV0' },
        { ...publicJwk, use: 'enc' },
        { ...publicJwk, alg: 'ES256' },
        null,
        'x',
        signingKey,
      ],
    }),
  )
  assert.equal(parsed.length, 1)
  assert.equal(parsed[0]?.key.type, 'public')
})

describe('hostile keys are refused, each for its reason', () => {
  const cases: ReadonlyArray<readonly [string, RegExp, () => Promise<string> | string]> = [
    ['alg none', /header|algorithm|not a signed JWT/, () => new UnsecuredJWT(goodClaims).encode()],
    ['alg none with a signature', /algorithm/, () => `${encode({ alg: 'none' })}.${encode(goodClaims)}.AAAA`],
    ['alg NoNe', /algorithm/, () => `${encode({ alg: 'NoNe' })}.${encode(goodClaims)}.AAAA`],
    [
      'HS256 with the public key as its secret',
      /algorithm/,
      () => sign(goodClaims, { alg: 'HS256' }, new TextEncoder().encode(JSON.stringify(publicJwk).padEnd(32))),
    ],
    ['wrong issuer', /issuer/, () => sign({ ...goodClaims, iss: 'somebody' })],
    ['no issuer', /issuer/, () => sign({ ...goodClaims, iss: undefined })],
    ['wrong audience', /audience/, () => sign({ ...goodClaims, aud: 'other' })],
    ['no audience', /audience/, () => sign({ ...goodClaims, aud: undefined })],
    ['signed by another key of the same id', /signature/, async () => sign(goodClaims, {}, await strangeKey())],
    ['unknown key id', /not among/, () => sign(goodClaims, { kid: 'other' })],
    ['ES256 claimed for an Ed25519 key', /not among/, async () => swapAlgorithm(await sign(goodClaims))],
    [
      'changed contents',
      /signature/,
      async () => swapPayload(await sign(goodClaims), { ...goodClaims, machines: 999 }),
    ],
    ['jku', /more than/, () => sign(goodClaims, { jku: 'https://evil.example/jwks' })],
    ['x5u', /more than/, () => sign(goodClaims, { x5u: 'https://evil.example/cert' })],
    ['jwk', /more than/, async () => sign(goodClaims, { jwk: await strangePublic() }, await strangeKey())],
    ['x5c', /more than/, () => sign(goodClaims, { x5c: ['AAAA'] })],
    ['crit', /more than/, () => `${encode({ alg: 'EdDSA', crit: ['b64'], b64: false })}.${encode(goodClaims)}.AAAA`],
    ['a lease as a key', /another type/, () => sign(goodClaims, { typ: leaseType })],
    ['typ of another kind', /another type/, () => sign(goodClaims, { typ: 'at+jwt' })],
    ['oversized', /longer/, () => sign({ ...goodClaims, padding: 'x'.repeat(20_000) })],
    ['no end', /claim/, () => sign({ ...goodClaims, exp: undefined })],
    ['an end that is text', /claim/, () => sign({ ...goodClaims, exp: '1800000000' })],
    ['an end beyond all years', /claim/, () => sign({ ...goodClaims, exp: 1e300 })],
    ['no id', /claim/, () => sign({ ...goodClaims, jti: undefined })],
    ['an endless name', /claim/, () => sign({ ...goodClaims, customer: 'x'.repeat(1000) })],
    ['control characters in the name', /claim/, () => sign({ ...goodClaims, customer: 'a\u001b[2J' })],
    ['negative machines', /claim/, () => sign({ ...goodClaims, machines: -1 })],
    ['empty', /not a signed JWT/, () => ''],
    ['five parts', /not a signed JWT/, () => 'a.b.c.d.e'],
    ['a header that is no JSON', /header/, () => `${Buffer.from('{').toString('base64url')}.e30.AAAA`],
    ['a header that is a list', /header|algorithm/, () => `${encode([])}.e30.AAAA`],
    [
      'a header with __proto__',
      /more than|algorithm/,
      () => `${Buffer.from('{"__proto__":{"alg":"EdDSA"}}').toString('base64url')}.e30.AAAA`,
    ],
  ]
  for (const [name, reason, make] of cases) {
    test(name, async () => {
      const verdict = await verifyLicenseKey(await make(), rules)
      assert.equal(verdict.ok, false)
      if (!verdict.ok) assert.match(verdict.reason, reason)
    })
  }

  test('an answer of another type', async () => {
    const lease = {
      iss: 'the-issuer',
      aud: 'millrace',
      status: 'ACTIVE',
      sub: 'L-1',
      machine: 'm',
      nonce: 'n',
      machines_used: 1,
      machines_allowed: 1,
      license_exp: 1_800_000_000,
      iat: 1_700_000_000,
      exp: 1_700_000_100,
    }
    assert.equal((await verifyLease(await sign(lease, { typ: leaseType }), rules)).ok, true)
    assert.equal((await verifyLease(await sign(lease), rules)).ok, false)
    assert.equal((await verifyLease(await sign(lease, { typ: undefined }), rules)).ok, false)
    assert.equal((await verifyLease(await sign({ ...lease, exp: lease.iat }, { typ: leaseType }), rules)).ok, false)
    assert.equal((await verifyLease(await sign({ ...lease, status: 'FINE' }, { typ: leaseType }), rules)).ok, false)
  })

  test('a key as an answer', async () => {
    assert.equal((await verifyLease(await sign(goodClaims), rules)).ok, false)
  })
})

async function strangeKey() {
  return (await generateKeyPair('EdDSA')).privateKey
}
async function strangePublic() {
  return await exportJWK((await generateKeyPair('EdDSA', { extractable: true })).publicKey)
}
function swapPayload(token: string, payload: object): string {
  const [header, , signature] = token.split('.')
  return `${header}.${encode(payload)}.${signature}`
}
function swapAlgorithm(token: string): string {
  const [, payload, signature] = token.split('.')
  return `${encode({ alg: 'ES256', kid: signingKey.kid })}.${payload}.${signature}`
}

test('any damage to a good key is refused, never a crash', async () => {
  const good = await sign(goodClaims)
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 1), fc.constantFrom(...'Aa0_-.=\n'), async (at, letter) => {
      const damaged = good.slice(0, at) + letter + good.slice(at + 1)
      if (damaged === good) return
      const verdict = await verifyLicenseKey(damaged, rules)
      // The last letter of a base64url text may carry bits that do not count.
      const sameSignature =
        Buffer.from(damaged.split('.')[2] ?? '', 'base64url').equals(
          Buffer.from(good.split('.')[2] ?? '', 'base64url'),
        ) && damaged.startsWith(good.slice(0, good.lastIndexOf('.') + 1))
      if (!sameSignature) assert.equal(verdict.ok, false)
    }),
    { numRuns: 300 },
  )
})

test('any text at all is refused, never a crash', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.array(fc.base64String(), { minLength: 3, maxLength: 3 }).map((p) => p.join('.')),
      ),
      async (text) => {
        assert.equal((await verifyLicenseKey(text, rules)).ok, false)
        assert.equal((await verifyLease(text, rules)).ok, false)
      },
    ),
    { numRuns: 300 },
  )
})
