/** Calls of one function: how many at once, how many in a second, how long, and what becomes of them while none succeeds. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import type { Timers } from '../../../src/base/timers.ts'
import { LaneCallGate } from '../../../src/lanes/tasks/call-gate.ts'
import type { Origin } from '../../../src/operators/contract.ts'
import type { CallSpec } from '../../../src/topology/operator-spec.ts'

const origin: Origin = { topic: 'in', partition: 0, offset: 0, watermark: 0, epoch: 1, at: 0, seq: 0, sub: 0 } as never

/** Time that passes when nothing else happens. */
class Stage {
  readonly clock = new VirtualClock()
  readonly held: string[] = []
  #due: Array<{ at: number; call: () => void }> = []

  readonly timers: Timers = {
    after: (delayMs, call) => {
      const entry = { at: this.clock.monotonic() + delayMs, call }
      this.#due.push(entry)
      return () => {
        this.#due = this.#due.filter((each) => each !== entry)
      }
    },
    soon: (call) => queueMicrotask(call),
  }

  gate(spec: CallSpec, lanes = 1): LaneCallGate {
    const { clock, timers } = this
    return new LaneCallGate('ask', spec, {
      clock,
      timers: { turns: timers, pauses: timers, timeouts: timers },
      random: () => 1,
      lanes,
      maxInFlight: 1000,
      show: () => undefined,
      held: () => this.held.push('held'),
      goesOn: () => this.held.push('on'),
      failed: () => undefined,
      settled: () => undefined,
    })
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.timers.after(ms, resolve))
  }

  async run(untilMs: number): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      const next = this.#due.toSorted((a, b) => a.at - b.at)[0]
      if (next === undefined || next.at > untilMs) return
      this.#due = this.#due.filter((each) => each !== next)
      this.clock.advance(Math.max(0, next.at - this.clock.monotonic()))
      next.call()
    }
  }
}

describe('the gate of a function', () => {
  test('lets as many through at once as were asked for, shared among the lanes', async () => {
    const stage = new Stage()
    const gate = stage.gate({ concurrency: 6 }, 2)
    let out = 0
    let most = 0
    const calls = Array.from({ length: 20 }, () =>
      gate.run(origin, async () => {
        most = Math.max(most, ++out)
        await stage.sleep(10)
        out--
      }),
    )
    await stage.run(1000)
    await Promise.all(calls)
    assert.equal(most, 3)
    assert.equal(stage.clock.monotonic(), 70)
  })

  test('begins no more calls in a time than the rate allows', async () => {
    const stage = new Stage()
    const gate = stage.gate({ ratePerMs: 0.1 }, 2)
    const began: number[] = []
    for (let i = 0; i < 5; i++) void gate.run(origin, () => began.push(stage.clock.monotonic()))
    await stage.run(1000)
    assert.deepEqual(began, [0, 20, 40, 60, 80])
  })

  test('takes a call without an answer in time for failed', async () => {
    const stage = new Stage()
    const call = stage.gate({ timeoutMs: 50 }).run(origin, () => stage.sleep(1000))
    const refused = assert.rejects(call, /ask had no answer within 50 ms/)
    await stage.run(60)
    await refused
  })

  test('waits for no answer of a call that failed at once', async () => {
    const stage = new Stage()
    const call = stage.gate({ timeoutMs: 50 }).run(origin, () => {
      throw new Error('at once')
    })
    await assert.rejects(call, /at once/)
    // A rejection that nobody hears would end the process.
    await stage.run(60)
    assert.equal(stage.clock.monotonic(), 0)
  })

  test('waits for a service that answers nobody, asking it one call at a time', async () => {
    const stage = new Stage()
    const gate = stage.gate({ concurrency: 10, breaker: { after: 3, pauseMs: 100 } })
    let out = 0
    let mostWhileBroken = 0
    let calls = 0
    const ask = async (): Promise<string> => {
      calls++
      out++
      if (stage.clock.monotonic() > 50) mostWhileBroken = Math.max(mostWhileBroken, out)
      await stage.sleep(5)
      out--
      if (stage.clock.monotonic() < 30_000) throw new Error('not now')
      return 'yes'
    }
    const answers = Array.from({ length: 10 }, () => gate.run(origin, ask))
    await stage.run(29_000)
    assert.equal(mostWhileBroken, 1)
    assert.ok(calls < 200, `${calls} calls`)
    assert.equal(stage.held.at(-1), 'held', 'nobody waits for a function meanwhile')
    await stage.run(100_000)
    assert.deepEqual(await Promise.all(answers), new Array(10).fill('yes'))
  })

  test('lets all others go on with the first call that comes through again', async () => {
    const stage = new Stage()
    const gate = stage.gate({ concurrency: 4, breaker: { after: 3, pauseMs: 200 } })
    const backMs = 31_000
    let out = 0
    let most = 0
    let firstMs = 0
    const ask = async (): Promise<void> => {
      most = Math.max(most, ++out)
      await stage.sleep(10)
      out--
      if (stage.clock.monotonic() < backMs) throw new Error('not now')
      firstMs ||= stage.clock.monotonic()
    }
    // They come one after the other, and so do the ends of their pauses.
    const answers = Array.from({ length: 20 }, (_, i) => stage.sleep(100 * i).then(() => gate.run(origin, ask)))
    await stage.run(100_000)
    await Promise.all(answers)
    const endedMs = stage.clock.monotonic()
    assert.ok(firstMs - backMs <= 5000, `the service was asked ${firstMs - backMs} ms after it was back`)
    assert.ok(endedMs - firstMs <= 100, `the last one was done ${endedMs - firstMs} ms after the first`)
    assert.equal(most, 4)
  })

  test('gives up a record that fails while others come through', async () => {
    const stage = new Stage()
    const gate = stage.gate({ breaker: { after: 3, pauseMs: 10 } })
    let calls = 0
    const poison = gate.run(origin, () => {
      calls++
      throw new Error('never')
    })
    const refused = assert.rejects(poison, /never/)
    for (let i = 0; i < 20; i++) void stage.sleep(7 * i + 1).then(() => gate.run(origin, () => 'fine'))
    await stage.run(10_000)
    await refused
    assert.equal(calls, 4, 'once before any other came through, and three times while others did')
  })

  test('gives up records that fail when all others are through, and nobody else is let in', async () => {
    const stage = new Stage()
    const gate = stage.gate({ breaker: { after: 5, pauseMs: 1000 } })
    const poison = [1, 2].map(() =>
      gate.run(origin, async () => {
        await stage.sleep(1)
        throw new Error('never')
      }),
    )
    const refused = Promise.all(poison.map((each) => assert.rejects(each, /never/)))
    for (let i = 0; i < 20; i++) void stage.sleep(i).then(() => gate.run(origin, () => 'fine'))
    await stage.run(60_000)
    const isOver = await Promise.race([
      refused.then(() => true),
      stage.sleep(0).then(() => false),
      stage.run(0).then(() => false),
    ])
    assert.equal(isOver, true)
  })

  test('waits for a service that goes away while it is asked, however long', async () => {
    const stage = new Stage()
    const gate = stage.gate({ breaker: { after: 5, pauseMs: 10 } })
    const ask = async (): Promise<string> => {
      await stage.sleep(1)
      const now = stage.clock.monotonic()
      if (now > 20 && now < 600_000) throw new Error('not now')
      return 'yes'
    }
    const asked = Array.from({ length: 30 }, (_, i) => stage.sleep(i).then(() => gate.run(origin, ask)))
    await stage.run(700_000)
    assert.deepEqual(await Promise.all(asked), new Array(30).fill('yes'))
  })

  test('does not take a record for the culprit whose calls fail with all others, and that had begun before', async () => {
    const stage = new Stage()
    const gate = stage.gate({ concurrency: 2, breaker: { after: 3, pauseMs: 10 } })
    const ask = async (): Promise<string> => {
      await stage.sleep(5)
      const now = stage.clock.monotonic()
      if (now > 7 && now < 5000) throw new Error('not now')
      return 'yes'
    }
    const early = gate.run(origin, async () => {
      await stage.sleep(5)
      return ask()
    })
    const others = Array.from({ length: 5 }, () => gate.run(origin, ask))
    await stage.run(100_000)
    assert.deepEqual(await Promise.all([early, ...others]), new Array(6).fill('yes'))
  })
})
