import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { millrace } from '../support/millrace.ts'
import { noMount, remount, smallDisks } from '../support/small-disk.ts'

const mount = smallDisks()
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

  test('a copy on a read-only file system is checked as it is, and not repaired', async (t) => {
    const disk = mount('backup', 'size=16m')
    if (disk === undefined) return t.skip(noMount)
    const [whole, unlocked, damaged] = ['whole', 'unlocked', 'damaged'].map((name) => join(disk, name)) as [
      string,
      string,
      string,
    ]
    const broker = await startEmbeddedBroker({ partitions: 1, folder: whole })
    const client = broker.client()
    await client.createTopics([{ topic: 'orders', partitions: 1 }])
    await client.close()
    await broker.close()
    for (const copy of [unlocked, damaged]) cpSync(whole, copy, { recursive: true })
    rmSync(join(unlocked, 'lock'))
    const bytes = readFileSync(join(damaged, 'journal'))
    const at = bytes.length - 3
    bytes[at] = (bytes[at] as number) ^ 1
    writeFileSync(join(damaged, 'journal'), bytes)
    const used = await startEmbeddedBroker({ partitions: 1, folder: join(disk, 'used') })
    const view = readOnlyView(join(disk, 'used'), folder)
    const inUse = await millrace(['broker', 'check', view])
    execFileSync('umount', [view])
    await used.close()
    remount(disk, 'ro')
    assert.equal(inUse.code, 2, inUse.stderr)
    assert.match(inUse.stderr, /is in use by the process \d+/)
    for (const copy of [whole, unlocked]) {
      const { code, stdout, stderr } = await millrace(['broker', 'check', copy])
      assert.equal(code, 0, stderr)
      assert.match(stdout, /^No damage: 1 topics/)
    }
    const check = await millrace(['broker', 'check', damaged])
    assert.equal(check.code, 1, check.stderr)
    assert.match(check.stdout, /journal, byte \d+/)
    const repair = await millrace(['broker', 'repair', damaged, '--cut'])
    assert.equal(repair.code, 2)
    assert.match(repair.stderr, /read-only file system.* Copy the folder/)
    assert.doesNotMatch(repair.stderr, /^\s+at /m, 'no stack trace')
  })
})

/** The same folder at another place, where nothing can be written. */
function readOnlyView(of: string, below: string): string {
  const view = mkdtempSync(join(below, 'view-'))
  execFileSync('mount', ['--bind', of, view])
  execFileSync('mount', ['-o', 'remount,bind,ro', view])
  return view
}
