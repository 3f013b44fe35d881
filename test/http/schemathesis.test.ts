import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { installSchemathesis, runSchemathesis } from '../../scripts/schemathesis.ts'
import { startFake } from './support/fake-subject.ts'
import { standby } from './support/ha-samples.ts'
import { startLive } from './support/live.ts'

const missing = installSchemathesis()
const skip = missing !== undefined && process.env.CI === undefined ? missing : false

describe('Schemathesis finds nothing that /openapi.json does not say', { skip }, () => {
  test('of every endpoint, high availability included', async (t) => {
    assert.equal(missing, undefined)
    const instance = await startFake({ ha: standby })
    t.after(() => instance.stop())
    const { code, output } = await runSchemathesis(instance.url, 20)
    assert.equal(code, 0, output)
  })

  test('of a running engine', async (t) => {
    assert.equal(missing, undefined)
    const live = await startLive({ app: 'conformance-app' })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    const { code, output } = await runSchemathesis(live.url, 10)
    assert.equal(code, 0, output)
  })
})
