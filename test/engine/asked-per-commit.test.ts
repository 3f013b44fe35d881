/** What commits ask of their broker, beside what is written: in quiet times it is most of what an application costs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProduceRequest } from '../../src/broker/port.ts'
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

const counting = defineApp({
  applicationId: 'sim',
  build: (topology) =>
    topology
      .stream('in', { key: serdes.string, value: serdes.json<string>() })
      .groupBy((value) => value, { key: serdes.string })
      .count({ store: 'counts' })
      .toStream()
      .to('out', { value: serdes.json<number>() }),
})

test('the little that a commit writes, results and changelogs of all lanes, leaves in one request', async () => {
  const lanes = 3
  let commits = 0
  const written: string[][] = []
  const engine = new VirtualEngine({
    compile: () => counting.compile(),
    settings: { lanes },
    tamper: (name, args, call) => {
      if (name === 'endTransaction') commits++
      const [request] = args as [ProduceRequest]
      if (name === 'produce') written.push(request.batches.map(({ topic }) => topic))
      return call(args)
    },
  })
  await engine.start()
  await engine.runs()
  commits = 0
  written.length = 0
  for (let i = 0; i < 20; i++) {
    await engine.put(
      'in',
      Array.from({ length: 12 }, (_, n) => ({ key: `k${n}`, value: `word ${n}`, timestamp: 1000 * i })),
    )
    await engine.passes(300)
  }
  await engine.settled()
  // The input is written over the same broker.
  const ofCommits = written.filter((topics) => !topics.includes('in'))
  assert.ok(commits >= 20, `${commits} commits`)
  assert.ok(ofCommits.length <= commits, `${ofCommits.length} requests in ${commits} commits`)
  const withBoth = ofCommits.filter((topics) => topics.includes('out') && topics.includes('sim-counts-changelog'))
  assert.ok(withBoth.length >= 20, `${withBoth.length} of them carry results and rows`)
})
