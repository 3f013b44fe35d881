/** What the interface takes for the priority of a pod is what the configuration takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { startFake } from './support/fake-subject.ts'
import { standby } from './support/ha-samples.ts'

test('a priority that the configuration takes is one that a command may set, and no other', async (t) => {
  const instance = await startFake({ ha: standby })
  t.after(() => instance.stop())
  const isConfigured = (value: string): boolean => {
    try {
      loadConfig({ set: [`ha.failover-priority=${value}`] })
      return true
    } catch {
      return false
    }
  }
  const values = ['0', '1', '999999', '1000000', '1000001', '9999999', '-1', '1.5']
  assert.deepEqual(values.map(isConfigured), [true, true, true, true, false, false, false, false])
  for (const value of values) {
    const { status, body } = await instance.ask({ path: `/ha/priority?pod=a&value=${value}`, method: 'POST' })
    assert.equal(status !== 400, isConfigured(value), `${value}: ${status} ${body}`)
  }
})
