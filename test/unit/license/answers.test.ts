import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { SignJWT } from 'jose'
import { newSigningKey } from '../../../examples/license-server/server.ts'
import { hourMs, keyOf, online, unreachable, type World, world } from './support.ts'

const minuteMs = 60_000

describe('hostile answers', () => {
  const rewrite = (make: (init: RequestInit, serve: () => Promise<Response>) => Promise<string>) => {
    return async (_url: string, init: RequestInit, serve: () => Promise<Response>) =>
      Response.json({ token: await make(init, serve) })
  }
  const tokenFrom = async (response: Promise<Response>) => ((await (await response).json()) as { token: string }).token

  async function afterAnswer(w: World, wire: World['wire']): Promise<string> {
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'VALID')
    w.wire = wire
    await w.timers.advance(70 * minuteMs)
    const { status } = license.state()
    w.wire = (_url, _init, serve) => serve()
    await w.timers.advance(2 * hourMs)
    assert.equal(license.state().status, 'VALID', 'a good answer mends it')
    assert.ok(w.asked.every((url) => url.startsWith('https://license.example/')))
    return status
  }

  test('a replayed answer is INVALID', async () => {
    const w = world()
    let recorded: string | undefined
    const record = rewrite(async (_init, serve) => {
      recorded ??= await tokenFrom(serve())
      return recorded
    })
    const first = w.wire
    w.wire = record
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'VALID')
    await w.timers.advance(70 * minuteMs)
    assert.equal(license.state().status, 'INVALID')
    assert.match(license.readiness().reason as string, /given before/)
    w.wire = first
    await w.timers.advance(hourMs)
    assert.equal(license.state().status, 'VALID')
  })

  test('an answer signed by somebody else takes nothing back while a good one covers', async () => {
    const stranger = world({ signingKey: await newSigningKey() })
    const w = world()
    const status = await afterAnswer(
      w,
      rewrite(async (init) => await stranger.server.answer('heartbeat', JSON.parse(String(init.body)))),
    )
    assert.equal(status, 'VALID')
  })

  test('an answer signed by somebody else is INVALID where none covers', async () => {
    const stranger = world({ signingKey: await newSigningKey() })
    const w = world()
    w.wire = rewrite(async (init) => await stranger.server.answer('activate', JSON.parse(String(init.body))))
    const license = w.license([`license.key=${await keyOf(w)}`, online])
    license.start()
    await w.timers.advance(6 * minuteMs)
    assert.equal(license.state().status, 'INVALID')
    assert.equal(license.readiness().up, false)
  })

  test('the license key itself as an answer takes nothing back while a good one covers', async () => {
    assert.equal(
      await afterAnswer(
        world(),
        rewrite(async (init) => JSON.parse(String(init.body)).key),
      ),
      'VALID',
    )
  })

  test('an answer for another machine is INVALID', async () => {
    const w = world()
    const wire = rewrite(async (init) =>
      w.server.answer('heartbeat', { ...JSON.parse(String(init.body)), machineId: 'other' }),
    )
    assert.equal(await afterAnswer(w, wire), 'INVALID')
  })

  test('an answer that names keys to fetch counts for nothing, and nobody is asked', async () => {
    const wire = rewrite(async () =>
      new SignJWT({})
        .setProtectedHeader({ alg: 'HS256', typ: 'lease+jwt', jku: 'https://evil.example/keys' })
        .sign(new Uint8Array(32)),
    )
    assert.equal(await afterAnswer(world(), wire), 'VALID')
  })

  const noAnswers: Readonly<Record<string, () => Promise<Response>>> = {
    'an error page': async () => new Response('<html>Bad gateway</html>', { status: 502 }),
    'an error page with status 200': async () => new Response('<html>login</html>'),
    'a refusal without a token': async () => Response.json({ error: 'no' }, { status: 403 }),
    'JSON of another kind': async () => Response.json([{ token: 5 }]),
    'an endless answer': async () => new Response('x'.repeat(1_000_000)),
    'a dead line': unreachable,
  }
  for (const [name, answer] of Object.entries(noAnswers)) {
    test(`${name} decides nothing`, async () => {
      assert.equal(await afterAnswer(world(), answer), 'VALID')
    })
  }
})
