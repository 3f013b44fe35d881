import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchText, RequestFailure } from '../../../src/license/fetch-text.ts'
import { unreachable } from './support.ts'

const { signal } = new AbortController()

test('an answer up to the limit is read, a longer one is not', async () => {
  const answer = async () => new Response('x'.repeat(1000))
  assert.equal((await fetchText(answer, 'https://a.example', { signal, limit: 1000 })).length, 1000)
  await assert.rejects(fetchText(answer, 'https://a.example', { signal, limit: 999 }), /longer than 999 bytes/)
})

test('user-info becomes a header, redirects are forbidden', async () => {
  const seen: Array<readonly [string, RequestInit]> = []
  await fetchText(
    async (url, init) => {
      seen.push([url, init])
      return new Response('')
    },
    'https://us%20er:w%40rd@a.example/x',
    { signal, limit: 10 },
  )
  const [url, init] = seen[0] as (typeof seen)[number]
  assert.equal(url, 'https://a.example/x')
  assert.equal(init.redirect, 'error')
  const { authorization } = init.headers as Readonly<Record<string, string>>
  assert.equal(authorization, `Basic ${Buffer.from('us er:w@rd').toString('base64')}`)
})

test('failures name the host and the reason, never a secret', async () => {
  const address = 'https://user:canary1@a.example/x'
  await assert.rejects(fetchText(unreachable, address, { signal, limit: 10 }), {
    message: 'a.example could not be asked: ECONNREFUSED',
  })
  const busy = async () => new Response('', { status: 503, headers: { 'retry-after': '7' } })
  await assert.rejects(
    fetchText(busy, address, { signal, limit: 10 }),
    (error) =>
      error instanceof RequestFailure && error.retryAfterMs === 7000 && error.message === 'a.example answered 503',
  )
})
