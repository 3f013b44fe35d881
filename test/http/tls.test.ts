import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { connect } from 'node:tls'
import { EngineError } from '../../src/base/errors.ts'
import { defaultHttpConfig } from '../../src/http/http-config.ts'
import { readCertificate, watchCertificate } from '../../src/http/server/tls.ts'
import { startFake } from './support/fake-subject.ts'

interface Files {
  readonly tlsCertFile: string
  readonly tlsKeyFile: string
}

/** A certificate for localhost, or undefined where the machine has no openssl. */
function certificate(folder: string): Files | undefined {
  const files = { tlsCertFile: join(folder, 'cert.pem'), tlsKeyFile: join(folder, 'key.pem') }
  const options = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost']
  try {
    execFileSync('openssl', [...options, '-keyout', files.tlsKeyFile, '-out', files.tlsCertFile], { stdio: 'ignore' })
    return files
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function get(url: string, ca: Buffer, path: string): Promise<number | undefined> {
  const { port } = new URL(url)
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: '127.0.0.1', port, path, ca, servername: 'localhost', agent: false },
      (incoming) => {
        incoming.resume()
        incoming.on('end', () => resolve(incoming.statusCode))
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}

describe('TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
  const files = certificate(folder)
  const skip = files === undefined ? 'openssl is not installed' : false

  test('with a certificate the interface is served over TLS alone, 1.2 or newer', { skip }, async (t) => {
    const instance = await startFake({ config: files ?? {} })
    t.after(() => instance.stop())
    assert.match(instance.url, /^https:/)
    const ca = readFileSync(files?.tlsCertFile ?? '')
    assert.equal(await get(instance.url, ca, '/health/live'), 200)
    assert.equal(await get(instance.url, ca, '/nope'), 404)
    const { port } = new URL(instance.url)
    const old = connect({ host: '127.0.0.1', port: Number(port), ca, maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' })
    await assert.rejects(
      new Promise((resolve, reject) => {
        old.on('secureConnect', resolve)
        old.on('error', reject)
      }),
    )
    await assert.rejects(fetch(instance.url.replace('https:', 'http:')))
    assert.equal(await get(instance.url, ca, '/health/live'), 200)
  })

  test('a missing or unreadable file is CONFIG_INVALID and names its key', () => {
    const config = { ...defaultHttpConfig, tlsCertFile: join(folder, 'nowhere.pem') }
    assert.throws(
      () => readCertificate(config),
      (error) => EngineError.is(error) && error.code === 'CONFIG_INVALID' && /tls\.cert-file/.test(error.message),
    )
  })

  test('watching ends without leaving anything behind', { skip }, () => {
    const config = { ...defaultHttpConfig, ...files }
    const unwatch = watchCertificate(
      config,
      () => undefined,
      () => assert.fail('nothing has changed'),
    )
    unwatch()
    rmSync(folder, { recursive: true })
  })
})
