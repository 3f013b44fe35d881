import assert from 'node:assert/strict'
import { test } from 'node:test'
import { installSchemathesis, runSchemathesis } from '../../scripts/schemathesis.ts'
import { startFake } from './support/fake-subject.ts'
import { standby } from './support/ha-samples.ts'

test('Schemathesis finds nothing that /openapi.json does not say', async (t) => {
  const missing = installSchemathesis()
  if (missing !== undefined) {
    assert.ok(process.env.CI === undefined, missing)
    t.skip(missing)
    return
  }
  const instance = await startFake({ ha: standby })
  t.after(() => instance.stop())
  const { code, output } = await runSchemathesis(instance.url, 20)
  assert.equal(code, 0, output)
})
