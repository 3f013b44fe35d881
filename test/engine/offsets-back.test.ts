/** An operator moves the offsets of the group back, and the stores stay: refused, until the offsets are put back. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { BrokerPort, CommittedOffset } from '../../src/broker/port.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { lastByKey, TestEngine } from './support/engine.ts'
import { found, quiet } from './support/why.ts'

const groupId = 'running-sum'

/** As a tool does that keeps what stands beside each offset. The group lets nobody do so while it has a member. */
async function setOffsets(broker: BrokerPort, offsets: readonly CommittedOffset[]): Promise<void> {
  const nobody = { groupId, memberId: '', generationId: -1, groupInstanceId: null }
  await eventually('the group takes the offsets', async () => {
    try {
      await broker.commitOffsets(nobody, offsets)
      return true
    } catch {
      return false
    }
  })
}

test('offsets that were moved back behind the stores are refused; put back, as the message says, nothing counts twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-back-'))
  const broker = await startEmbeddedBroker({ partitions: 2 })
  const operator = broker.client('operator')
  t.after(async () => {
    await operator.close()
    await broker.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const settings = {
    ...quiet,
    'engine.state.store': 'lmdb',
    'engine.state.dir': folder,
    'consumer.session.timeout.ms': 6000,
    'consumer.heartbeat.interval.ms': 500,
  }
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  const committed = (): Promise<CommittedOffset[]> => operator.committedOffsets(groupId, null, true)
  const put = async (engine: TestEngine, some: readonly number[]): Promise<void> => {
    const records = some.flatMap((value) => ['a', 'b', 'c'].map((key) => ({ key, value })))
    await engine.put('numbers', records)
    await engine.idle()
  }

  const first = await TestEngine.start(t, 'running-sum', settings, broker)
  await put(first, numbers.slice(0, 3))
  const early = await committed()
  await put(first, numbers.slice(3, 6))
  await first.stop()
  const late = await committed()

  await setOffsets(operator, early)
  const refused = await TestEngine.start(t, 'running-sum', settings, broker)
  await refused.reaches('FAILED')
  const { failure } = refused.runtime.view.state()
  assert.equal(failure?.code, 'STORE_AHEAD')
  assert.match(
    failure.message,
    /newer than the group's offsets: they were moved back; .* put the offsets back as they were$/,
  )
  const { first: finding } = await found(refused, 'FAILED')
  assert.match(finding.next, /Only the offsets were, and the tool that did it can put them back as they were/)
  assert.ok(finding.next.includes(join(folder, groupId)), finding.next)
  assert.equal(await refused.runtime.stop(), 2, 'to start again does not help')
  await refused.stop()
  assert.deepEqual(await committed(), early, 'what was refused has changed nothing')

  await setOffsets(operator, late)
  const again = await TestEngine.start(t, 'running-sum', settings, broker)
  await put(again, numbers.slice(6))
  assert.deepEqual(lastByKey(await again.read('seen')), { a: numbers, b: numbers, c: numbers })
  assert.deepEqual(lastByKey(await again.read('sums')), { 'mod-0': 54, 'mod-1': 36, 'mod-2': 45 })
})
