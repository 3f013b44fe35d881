import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { startRuntime } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'

test('the interface is mounted in a server of the application, with indicators and metrics of its own', async () => {
  const runtime = await startRuntime({
    application: new URL('apps/scenario-app.ts', import.meta.url),
    config: { 'runtime.http.enabled': false },
    log: () => undefined,
  })
  const server = createServer((request, response) => void runtime.handler(request, response)).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    assert.equal(runtime.url, undefined)
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const read = async (path: string): Promise<string> => (await fetch(base + path)).text()

    const removeMetric = runtime.metrics.append(() => '# TYPE orders_open gauge\norders_open 7\n')
    let up = true
    const remove = runtime.indicators.register({ name: 'orders', check: () => ({ up }), intervalMs: 20 })
    const component = async (): Promise<string | undefined> => {
      const report = JSON.parse(await read('/health/ready')) as { components: Array<{ name: string; status: string }> }
      return report.components.find((c) => c.name === 'orders')?.status
    }
    const settled = async (status: string | undefined): Promise<void> => {
      await eventually(`orders is ${status}`, async () => (await component()) === status)
    }
    await settled('UP')
    up = false
    await settled('DOWN')
    remove()
    await settled(undefined)

    assert.match(await read('/metrics'), /^orders_open 7$/m)
    removeMetric()
    assert.match(await read('/info'), /"\/watermarks"/)
  } finally {
    server.close()
    server.closeAllConnections()
    assert.equal(await runtime.stop(), 0)
  }
})
