import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { fitOf, shapeOf } from '../../../src/ha/topology-shape.ts'
import { diffTopologies, type StoreState, type TopologyState } from '../../../src/topology/changes/diff.ts'

const store: fc.Arbitrary<StoreState> = fc.record({
  name: fc.constantFrom('sums', 'counts', 'x'.repeat(150)),
  kind: fc.constantFrom('key-value', 'window'),
  keySerde: fc.constantFrom('string', 'json'),
  valueSerde: fc.constant('json'),
  timestamped: fc.boolean(),
  retentionMs: fc.integer({ min: 1, max: 3 }),
  subtopology: fc.constant(0),
})
const topology: fc.Arbitrary<TopologyState> = fc.record({
  stores: fc.uniqueArray(store, { selector: ({ name }) => name }),
  sources: fc
    .uniqueArray(fc.constantFrom('orders', 'payments'))
    .map((topics) =>
      topics.map((topic) => ({ topics: [topic], keySerde: 'string', valueSerde: 'json', subtopology: 0 })),
    ),
  repartitions: fc.subarray(['by-customer', 'by-day']),
})

const runs = (state: TopologyState, topologyHash: string) => ({
  podId: 'active',
  topologyHash,
  topologyShape: new Map(Object.entries(shapeOf(state))),
})

describe('the shape of a topology', () => {
  test('lets go on what `topology --diff` lets go on, as long as nothing is left behind', () => {
    fc.assert(
      fc.property(topology, topology, (before, after) => {
        const view = { ran: runs(before, 'before'), abandoned: new Set<string>() }
        const { fit } = fitOf(view, runs(after, 'after'))
        const breaks = diffTopologies(before, after).some(({ level }) => level === 'breaks')
        const names = (state: TopologyState): string[] => [
          ...state.stores.map(({ name }) => `s ${name}`),
          ...state.sources.map(({ topics }) => `i ${topics.join()}`),
          ...state.repartitions.map((topic) => `r ${topic}`),
        ]
        const has = new Set(names(after))
        const leaves = names(before).some((name) => !has.has(name))
        assert.equal(fit === 'fits', !breaks && !leaves, fit)
        if (fit === 'breaks') assert.ok(breaks, 'what is refused by force too is what the diff refuses')
      }),
    )
  })

  test('a pod whose store lay still while another build ran does not take over by itself', () => {
    const state = (...stores: string[]): TopologyState => ({
      stores: stores.map((name) => ({
        name,
        kind: 'key-value',
        keySerde: 'string',
        valueSerde: 'json',
        timestamped: false,
        subtopology: 0,
      })),
      sources: [],
      repartitions: [],
    })
    const view = { ran: runs(state('a'), 'less'), abandoned: new Set(['store b']) }
    const fit = fitOf(view, runs(state('a', 'b'), 'more'))
    assert.equal(fit.fit, 'lacks')
    assert.match('why' in fit ? fit.why : '', /the store b of its application has a gap/)
  })

  test('of a build that tells no shape nobody guesses', () => {
    const view = { ran: { podId: 'old', topologyHash: 'old', topologyShape: new Map() }, abandoned: new Set<string>() }
    const own = runs({ stores: [], sources: [], repartitions: [] }, 'new')
    assert.equal(fitOf(view, own).fit, 'lacks')
    assert.equal(fitOf(view, { ...own, topologyHash: 'old' }).fit, 'fits')
  })
})
