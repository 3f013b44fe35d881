/** What commits ask of their broker, beside what is written: in quiet times it is most of what an application costs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, serdes } from '../../src/index.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

/** No position of any topic goes with what it puts out. */
const ticking = defineApp({
  applicationId: 'sim',
  build(topology) {
    const out = { key: serdes.string, value: serdes.json<number>() }
    topology
      .scheduled('often', { every: '10ms', ...out, emit: ({ count }) => ({ key: 'tick', value: count }) })
      .to('out')
  },
})

for (const guarantee of ['exactly-once', 'at-least-once'] as const) {
  test(`the group is asked by commits without positions where they have to be sure of their place (${guarantee})`, async () => {
    const asked = new Map<string, number>()
    const engine = new VirtualEngine({
      compile: () => ticking.compile(),
      settings: { guarantee, durableStores: false },
      tamper: (name, args, call) => {
        asked.set(name, (asked.get(name) ?? 0) + 1)
        return call(args)
      },
    })
    await engine.start()
    await engine.runs()
    await engine.passes(1000)
    asked.clear()
    await engine.passes(5000)
    const of = (name: string): number => asked.get(name) ?? 0
    const commits = guarantee === 'exactly-once' ? of('endTransaction') : of('commitOffsets')
    assert.ok(commits > 20, `${commits} commits`)
    // Beside the few by which the member stays in the group.
    const beats = of('heartbeat')
    if (guarantee === 'exactly-once') assert.ok(beats >= commits, `${beats} heartbeats in ${commits} commits`)
    else assert.ok(beats < commits / 10, `${beats} heartbeats in ${commits} commits`)
  })
}
