/** Rows on the disk that are damaged while the application runs, and are met by a question or by a careless function. */
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { lastByKey, TestEngine } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-damage-open-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const keys = Array.from({ length: 3000 }, (_, i) => `customer-${String(i).padStart(5, '0')}`)
const damaged = 'customer-02222'
const rounds = 3

/** All keys have been counted so often, and their rows lie on the disk alone. */
async function counted(t: TestContext, name: string): Promise<TestEngine> {
  const start = (): Promise<TestEngine> =>
    TestEngine.start(t, 'careless', {
      'broker.bootstrap-servers': `embedded:${join(folder, name, 'broker')}`,
      'broker.embedded.partitions': 1,
      'engine.lanes.count': 1,
      'engine.state.dir': join(folder, name, 'state'),
      'engine.state.store': 'lmdb',
    })
  const first = await start()
  for (let round = 0; round < rounds; round++)
    await first.put(
      'in',
      keys.map((key) => ({ key, value: round })),
    )
  await first.idle()
  await first.stop()
  const engine = await start()
  await engine.reaches('RUNNING')
  return engine
}

function stateFolder(name: string): string {
  return join(folder, name, 'state', 'careless')
}

/** A bit of the row, wherever a snapshot has it. */
function damage(name: string): void {
  const file = join(stateFolder(name), 'partition-0', 'data.mdb')
  const bytes = readFileSync(file)
  const fd = openSync(file, 'r+')
  let found = 0
  for (let at = bytes.indexOf(damaged); at >= 0; at = bytes.indexOf(damaged, at + 1)) {
    const place = at + damaged.length + 1
    writeSync(fd, Uint8Array.of((bytes[place] as number) ^ 4), 0, 1, place)
    found++
  }
  closeSync(fd)
  assert.ok(found > 0, 'the row is not on the disk')
}

const isSetAside = (name: string): boolean => readdirSync(stateFolder(name)).some((each) => each.includes('.corrupt-'))
const isRestarted = ({ log }: TestEngine): boolean => log.some(({ message }) => /restarting in place/.test(message))

async function assertCounts(engine: TestEngine, more: Readonly<Record<string, number>>): Promise<void> {
  await engine.idle()
  const last = lastByKey<number>(await engine.read('out'))
  for (const key of keys) assert.equal(last[key], rounds + (more[key] ?? 0), key)
}

describe('a row that is damaged while its file is open', () => {
  test('and met by a question: the lane begins anew, and no row is taken for one that never was', async (t) => {
    const engine = await counted(t, 'asked')
    damage('asked')
    await assert.rejects(engine.runtime.store('times').get(damaged), { code: 'STORE_CORRUPT' })
    await eventually('the run begins anew', () => isRestarted(engine) && engine.state === 'RUNNING')
    assert.ok(isSetAside('asked'))
    await engine.put(
      'in',
      ['customer-00077', damaged].map((key) => ({ key, value: rounds })),
    )
    await assertCounts(engine, { 'customer-00077': 1, [damaged]: 1 })
  })

  test('and met by a function that catches the error: nothing of that is committed', async (t) => {
    const engine = await counted(t, 'caught')
    damage('caught')
    await engine.put(
      'in',
      [damaged, 'customer-00078'].map((key) => ({ key, value: rounds })),
    )
    await eventually('the run begins anew', () => isRestarted(engine) && engine.state === 'RUNNING')
    await assertCounts(engine, { 'customer-00078': 1, [damaged]: 1 })
  })
})
