import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { moduleTokens, type SaslToken, TokenSource } from '../../../src/broker/kafka/token-source.ts'

class Provider {
  now = 1_000_000
  asked = 0
  fails: Error | undefined
  readonly source = new TokenSource({ provider: () => this.#answer(), now: () => this.now })

  async #answer(): Promise<SaslToken> {
    this.asked++
    if (this.fails) throw this.fails
    return { token: `token ${this.asked}`, expiresAtMs: this.now + 100_000 }
  }
}

describe('tokens for connections', () => {
  test('one serves all until it is renewed before its end', async (t) => {
    const provider = new Provider()
    t.after(() => provider.source.close())
    assert.deepEqual(await Promise.all([provider.source.token(), provider.source.token()]), ['token 1', 'token 1'])
    provider.now += 79_000
    assert.equal(await provider.source.token(), 'token 1')
    provider.now += 2000
    assert.equal(await provider.source.token(), 'token 2')
    assert.equal(provider.asked, 2)
  })

  test('the old one holds while no new one comes; then the broker counts as out of reach', async (t) => {
    const provider = new Provider()
    t.after(() => provider.source.close())
    await provider.source.token()
    provider.fails = new Error('away')
    provider.now += 90_000
    assert.equal(await provider.source.token(), 'token 1')
    provider.now += 11_000
    await assert.rejects(provider.source.token(), { errorClass: 'unreachable', message: 'away' })
    provider.fails = undefined
    assert.match(await provider.source.token(), /^token \d+$/)
  })

  test('an answer that is no token is refused', async (t) => {
    const source = new TokenSource({ provider: () => ({ token: 'x' }) as never })
    t.after(() => source.close())
    await assert.rejects(source.token(), /must answer \{ token, expiresAtMs \}/)
  })

  test('a module that is none is named', async () => {
    const ask = moduleTokens('file:///nowhere/tokens.mjs')
    await assert.rejects(
      async () => ask({ signal: new AbortController().signal }),
      /broker\.sasl\.token-provider: file:.*tokens\.mjs cannot be loaded/,
    )
  })
})
