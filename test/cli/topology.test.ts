import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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

  test('says whether the running state can be taken over', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-diff-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const { stdout } = await millrace(['topology', app, '--format', 'json'])
    const same = join(folder, 'same.json')
    writeFileSync(same, stdout)
    const fits = await millrace(['topology', app, '--diff', same])
    assert.deepEqual([fits.code, fits.stdout], [0, 'totals can go on with the running state.\n'])
    const other = join(folder, 'other.json')
    writeFileSync(other, stdout.replaceAll('"name": "totals"', '"name": "sums"'))
    const broken = await millrace(['topology', app, '--diff', other, '--format', 'json'])
    assert.equal(broken.code, 1)
    const { fits: verdict, differences } = JSON.parse(broken.stdout) as { fits: boolean; differences: unknown[] }
    assert.equal(verdict, false)
    assert.equal(differences.length, 1)
    writeFileSync(other, '{}')
    const wrong = await millrace(['topology', app, '--diff', other])
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /is not the output of 'millrace topology --format json'/)
  })

  test('refuses other formats and broken modules with exit code 2', async () => {
    const format = await millrace(['topology', app, '--format', 'xml'])
    assert.deepEqual([format.code, format.stderr], [2, "millrace: --format is 'xml'; it is text or json.\n"])
    const missing = await millrace(['topology', 'nowhere.ts'])
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /^millrace: .*nowhere\.ts/)
  })
})
