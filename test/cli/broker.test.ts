import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { millrace } from '../support/millrace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-broker-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const totals = join(import.meta.dirname, 'apps', 'totals.ts')
const data = join(folder, 'data')
const journal = join(data, 'journal')
const set = ['runtime.http.enabled=false', 'engine.lanes.count=2', `broker.bootstrap-servers=embedded:${data}`]
const settings = [...set, `engine.state.dir=${join(folder, 'state')}`].flatMap((each) => ['--set', each])

describe('millrace broker', () => {
  test('a damaged journal: the run is refused, the damage shown, cut on request alone, and the rest goes on', async () => {
    const lines = join(folder, 'amounts.ndjson')
    const record = (i: number): string => `${JSON.stringify({ key: `k${i % 7}`, value: i, timestamp: i })}\n`
    writeFileSync(lines, Array.from({ length: 500 }, (_, i) => record(i)).join(''))
    const run = ['run', totals, ...settings, '--feed', `amounts=${lines}`, '--until-idle']
    const first = await millrace(run)
    assert.equal(first.code, 0, first.stderr)
    assert.match((await millrace(['broker', 'check', data])).stdout, /^No damage: \d+ topics/)

    const bytes = readFileSync(journal)
    // In the last entries: those before them are whole.
    const at = bytes.length - 20
    bytes[at] = (bytes[at] as number) ^ 1
    writeFileSync(journal, bytes)
    const refused = await millrace(run)
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /journal is damaged at byte \d+: .*millrace broker check/)
    assert.doesNotMatch(refused.stderr, /^\s+at /m, 'no stack trace')
    assert.deepEqual(readFileSync(journal), bytes, 'nothing was changed')

    const check = await millrace(['broker', 'check', data])
    assert.equal(check.code, 1)
    assert.match(check.stdout, /journal, byte \d+: .*\n {2}Lost: all that was noted behind entry/)
    const asked = await millrace(['broker', 'repair', data])
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /add --cut/)
    assert.deepEqual(readFileSync(journal), bytes, 'nothing was changed')

    const repaired = await millrace(['broker', 'repair', data, '--cut'])
    assert.equal(repaired.code, 0, repaired.stderr)
    assert.match(repaired.stdout, /Lost: .*\n.*This was cut off/s)
    assert.equal((await millrace(['broker', 'check', data])).code, 0)
    const again = await millrace(run)
    assert.equal(again.code, 0, again.stderr)
  })

  test('what is no folder of a broker is refused', async () => {
    const { code, stderr } = await millrace(['broker', 'check', folder])
    assert.equal(code, 2)
    assert.match(stderr, /is no folder of an embedded broker/)
  })
})
