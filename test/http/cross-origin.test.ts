/** Which pages of other origins may read the answers: consoles at the configured addresses, and nobody else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFake } from './support/fake-subject.ts'

const pod = 'http://10.0.0.7:8080'
const wish = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' }

test('no answer is for a page of another origin, unless its process is configured', async (t) => {
  const closed = await startFake()
  t.after(() => closed.stop())
  const open = await startFake({ config: { consolePods: [pod] } })
  t.after(() => open.stop())
  for (const [instance, origin, isAllowed] of [
    [closed, pod, false],
    [open, 'http://10.0.0.8:8080', false],
    [open, 'null', false],
    [open, pod, true],
  ] as const) {
    const answer = await instance.ask({ path: '/why', headers: { origin } })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['access-control-allow-origin'], isAllowed ? pod : undefined, origin)
    const permission = await instance.ask({ path: '/why', method: 'OPTIONS', headers: { origin, ...wish } })
    assert.equal(permission.status, isAllowed ? 200 : 405, origin)
    assert.equal(permission.headers['access-control-allow-methods'], isAllowed ? 'GET' : undefined, origin)
    assert.equal(answer.headers['access-control-allow-credentials'], undefined)
  }
})

test('a console of another origin reads, and gives no command', async (t) => {
  const instance = await startFake({ config: { consolePods: [pod], token: 'open-sesame' } })
  t.after(() => instance.stop())
  const wanted = { ...wish, 'access-control-request-method': 'POST' }
  const permission = await instance.ask({ path: '/pause', method: 'OPTIONS', headers: { origin: pod, ...wanted } })
  assert.equal(permission.headers['access-control-allow-origin'], undefined)
  const authorization = 'Bearer open-sesame'
  const command = await instance.ask({ path: '/pause', method: 'POST', headers: { origin: pod, authorization } })
  assert.equal(command.status, 403)
  // What it may read it reads with the token alone.
  const stranger = await instance.ask({ path: '/why', headers: { origin: pod } })
  assert.deepEqual([stranger.status, stranger.headers['access-control-allow-origin']], [401, pod])
})

test('the console may ask the configured processes and no others', async (t) => {
  const instance = await startFake({ config: { consolePods: [pod, 'https://pods.example'] } })
  t.after(() => instance.stop())
  const page = await instance.ask({ path: '/console/' })
  const policy = String(page.headers['content-security-policy'])
  assert.match(policy, /; connect-src 'self' http:\/\/10\.0\.0\.7:8080 https:\/\/pods\.example; base-uri 'none';/)
  assert.match(page.body, /data-pods="http:\/\/10\.0\.0\.7:8080 https:\/\/pods\.example"/)
})
