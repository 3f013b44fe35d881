import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { millrace } from '../support/millrace.ts'

const app = join(import.meta.dirname, 'apps', 'totals.ts')

describe('millrace topology', () => {
  test('prints the text that Kafka Streams prints, without running anything', async () => {
    const { code, stdout, stderr } = await millrace(['topology', app])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Topologies:\n {3}Sub-topology: 0\n/)
    assert.match(stdout, /Source: KSTREAM-SOURCE-0000000000 \(topics: \[amounts\]\)/)
    assert.match(stdout, /\(stores: \[totals\]\)/)
    assert.equal(stderr, '')
  })

  test('prints JSON', async () => {
    const { stdout } = await millrace(['topology', app, '--format', 'json'])
    const described = JSON.parse(stdout) as { applicationId: string; subtopologies: unknown[] }
    assert.equal(described.applicationId, 'totals')
    assert.equal(described.subtopologies.length, 1)
  })

  test('refuses other formats and broken modules with exit code 2', async () => {
    const format = await millrace(['topology', app, '--format', 'xml'])
    assert.deepEqual([format.code, format.stderr], [2, "millrace: --format is 'xml'; it is text or json.\n"])
    const missing = await millrace(['topology', 'nowhere.ts'])
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /^millrace: .*nowhere\.ts/)
  })
})
