/** The client over real sockets: credentials, several addresses, and every way in which a registry fails. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { RegistryClient, RegistryFailure } from '../../../../src/serde/registry/client.ts'
import { httpTransport, type TransportOptions } from '../../../../src/serde/registry/transport.ts'
import { RegistryServer } from '../../../support/registry-server.ts'

const client = (options: Partial<TransportOptions> & { urls: string[] }): RegistryClient =>
  new RegistryClient(httpTransport({ timeoutMs: 2000, ...options }))

const schema = { type: 'record', name: 'R', fields: [{ name: 'a', type: 'int' }] }

describe('the client of a registry', () => {
  test('sends user and password, of the settings or of the address, or a token', async (t) => {
    const server = await RegistryServer.start(t)
    const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`
    await client({ urls: [server.url] }).ping()
    await client({ urls: [server.url], username: 'u', password: 'p' }).ping()
    await client({ urls: [server.url.replace('//', '//reader:s%40cret@')] }).ping()
    await client({ urls: [server.url], username: 'u', password: 'p', token: 'abc' }).ping()
    assert.deepEqual(server.authorizations, [undefined, basic('u:p'), basic('reader:s@cret'), 'Bearer abc'])
  })

  test('goes to the next address where one is away or broken, and stays there', async (t) => {
    const [first, second] = [await RegistryServer.start(t), await RegistryServer.start(t)]
    const id = second.registry.register('s', schema)
    first.mood = 'error'
    const both = client({ urls: [first.url, second.url] })
    assert.equal((await both.byId(id)).id, id)
    await first.down()
    assert.equal((await both.byId(id)).id, id)
    assert.equal(first.asked.length, 1)
    const away = client({ urls: ['http://127.0.0.1:1', second.url] })
    assert.equal((await away.byId(id)).id, id)
  })

  test('tells what is wrong in a sentence, without credentials', async (t) => {
    const server = await RegistryServer.start(t)
    const asking = client({ urls: [server.url], username: 'u', password: 'top-secret', timeoutMs: 300 })
    const fails = async (pattern: RegExp, status: number): Promise<void> => {
      await assert.rejects(asking.byId(1), (error) => {
        assert.ok(error instanceof RegistryFailure)
        assert.match(error.message, pattern)
        assert.equal(error.status, status)
        assert.doesNotMatch(error.message, /top-secret/)
        return true
      })
    }
    await fails(/with 404: Schema 1 not found/, 404)
    server.mood = 'error'
    await fails(/with 500: the store is broken/, 500)
    server.mood = 'refusing'
    await fails(/refuses the credentials \(401\)/, 401)
    server.mood = 'garbage'
    await fails(/what is no JSON of a registry/, 0)
    server.mood = 'slow'
    await fails(/no answer within 300 ms/, 0)
    await server.down()
    await fails(/cannot be reached: .*ECONNREFUSED/, 0)
  })

  test('trusts an authority of its own and shows a certificate', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-registry-tls-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const options = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
    const names = ['-addext', 'subjectAltName=IP:127.0.0.1']
    try {
      execFileSync('openssl', [...options, ...names, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      t.skip('openssl is not installed')
      return
    }
    const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)]
    const server = createServer({ cert, key, ca: cert, requestCert: true, rejectUnauthorized: true }, (_, response) => {
      response.end('["subject"]')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const urls = [`https://127.0.0.1:${(server.address() as AddressInfo).port}`]
    assert.deepEqual(await client({ urls, caFile: certFile, certFile, keyFile }).subjects(), ['subject'])
    await assert.rejects(client({ urls, certFile, keyFile }).byId(1), /cannot be reached: self-signed/)
    await assert.rejects(client({ urls, caFile: certFile }).byId(1), /cannot be reached/)
  })

  test('follows references of references', async (t) => {
    const server = await RegistryServer.start(t)
    const { registry } = server
    const post = (subject: string, text: unknown, references: object[]): unknown =>
      registry.handle({
        method: 'POST',
        path: `/subjects/${subject}/versions`,
        body: { schema: JSON.stringify(text), references },
      }).body
    const money = { type: 'record', name: 'Money', fields: [{ name: 'units', type: 'long' }] }
    const line = { type: 'record', name: 'Line', fields: [{ name: 'price', type: 'Money' }] }
    post('money', money, [])
    post('line', line, [{ name: 'Money', subject: 'money', version: 1 }])
    const { id } = post('order', { type: 'record', name: 'Order', fields: [{ name: 'line', type: 'Line' }] }, [
      { name: 'Line', subject: 'line', version: 1 },
    ]) as { id: number }
    const known = await client({ urls: [server.url] }).byId(id)
    assert.deepEqual(
      known.references.map(({ name }) => name),
      ['Money', 'Line'],
    )
  })
})
