/** A service that answers twenty calls at once, gets slower with more of them, and fails for a while: it is waited for. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { firstTime, type In, lastByKey, TestEngine } from './support/engine.ts'

const capacity = 20
const callMs = 10

class Service {
  #out = 0
  most = 0
  calls = 0
  refused = 0
  fails = false
  readonly server = createServer((request, response) => {
    this.calls++
    this.most = Math.max(this.most, ++this.#out)
    // Beyond its capacity each call makes the others slower.
    setTimeout(
      () => {
        this.#out--
        if (this.fails) this.refused++
        response.statusCode = this.fails ? 503 : 200
        response.end(String(Number(request.url?.slice(1)) * 10))
      },
      callMs * Math.max(1, this.#out / capacity),
    )
  })

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }
}

describe('a service behind a function', () => {
  for (const store of ['memory', 'lmdb'] as const) {
    test(`is neither run down nor given up, with stores in ${store}`, async (t) => {
      const service = new Service()
      process.env.TEST_SERVICE_URL = await service.start()
      t.after(() => service.server.close())
      const dir = mkdtempSync(join(tmpdir(), 'millrace-asking-'))
      t.after(() => rmSync(dir, { recursive: true, force: true }))
      const engine = await TestEngine.start(t, 'asking', {
        'commit-barrier.timeout-ms': 10_000,
        'commit-barrier.max-engine-restarts': 0,
        'engine.state.store': store,
        'engine.state.dir': dir,
      })
      const keys = 150
      const records = Array.from({ length: 3000 }, (_, n): In => {
        return { key: `k${n % keys}`, value: n, timestamp: firstTime + n }
      })
      await engine.put('questions', records)
      await new Promise((resolve) => setTimeout(resolve, 400))
      service.fails = true
      await new Promise((resolve) => setTimeout(resolve, 1500))
      const during = service.calls
      await new Promise((resolve) => setTimeout(resolve, 1500))
      assert.ok(service.calls - during < 300, `${service.calls - during} calls while it answers nobody`)
      service.fails = false
      await engine.idle()

      assert.equal(engine.state, 'RUNNING', engine.log.map(({ message }) => message).join('\n'))
      // Each lane says once that calls fail; nothing else is amiss.
      const told = engine.log.filter(({ level }) => level !== 'info').map(({ message }) => message)
      const isFailing = /^A call of .+ has failed \d+ times .+ the service said 503$/
      assert.deepEqual(
        told.filter((message) => !isFailing.test(message)),
        [],
      )
      assert.ok(told.length > 0 && told.length <= 8, `${told.length} lines`)
      assert.ok(service.refused > 0)
      t.diagnostic(`${service.calls} calls for ${records.length} records, at most ${service.most} at once`)
      const lists = lastByKey<number[]>(await engine.read('answers'))
      const expected = Object.fromEntries(
        Array.from({ length: keys }, (_, k) => [`k${k}`, Array.from({ length: 20 }, (_, i) => (k + i * keys) * 10)]),
      )
      assert.deepEqual(lists, expected)
    })
  }
})
