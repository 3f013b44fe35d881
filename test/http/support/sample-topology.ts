/** A compiled topology put together by hand: one of everything that the views show. */
import type { StoreSpec } from '../../../src/state/contract.ts'
import type {
  CompiledNode,
  CompiledSource,
  CompiledTopology,
  WatermarkOptions,
} from '../../../src/topology/compiled.ts'
import type { OperatorSpec } from '../../../src/topology/operator-spec.ts'

const serde = {
  name: 'string',
  serialize: (value: unknown) => Buffer.from(String(value)),
  deserialize: (bytes: Uint8Array): unknown => Buffer.from(bytes).toString(),
}
const watermark: WatermarkOptions = {
  maxOutOfOrdernessMs: 600_000,
  idlenessMs: undefined,
  alignment: { group: 'feeds', maxDriftMs: 60_000 },
}
const store = (name: string): StoreSpec => ({
  name,
  kind: 'key-value',
  keySerde: serde,
  valueSerde: serde,
  timestamped: true,
  changelog: true,
})
const sink = (topic: Extract<OperatorSpec, { op: 'sink' }>['topic']): OperatorSpec => ({
  op: 'sink',
  topic,
  topicFunctionName: typeof topic === 'string' ? undefined : 'byRegion',
  keySerde: serde,
  valueSerde: serde,
  windowedInner: undefined,
})
const handOff: OperatorSpec = {
  op: 'handOff',
  topic: 'counts-repartition',
  boundary: 0,
  keySerde: serde,
  valueSerde: serde,
  windowedInner: undefined,
  toPartition: undefined,
  carriesChanges: false,
}

function node(
  index: number,
  name: string,
  type: CompiledNode['type'],
  subtopology: number,
  links: { children?: number[]; parents?: number[]; stores?: string[]; spec?: OperatorSpec },
): CompiledNode {
  const { children = [], parents = [], stores = [], spec = { op: 'passThrough' } } = links
  return { index, name, type, subtopology, children, parents, stores, hiddenStores: [], spec }
}

function source(index: number, at: CompiledNode, over: Partial<CompiledSource>): CompiledSource {
  return {
    index,
    node: at.index,
    subtopology: at.subtopology,
    name: at.name,
    kind: 'topics',
    topics: [],
    pattern: undefined,
    keySerde: serde,
    valueSerde: serde,
    watermark,
    timestampExtractor: undefined,
    isTable: false,
    readsValue: true,
    carriesValue: true,
    tellsNull: false,
    boundary: undefined,
    level: 0,
    schedule: undefined,
    ...over,
  }
}

const nodes: CompiledNode[] = [
  node(0, 'KSTREAM-SOURCE-0000000000', 'source', 0, { children: [1], spec: { op: 'source' } }),
  node(1, 'KSTREAM-KEY-SELECT-0000000001', 'processor', 0, { children: [2], parents: [0, 7] }),
  node(2, 'counts-repartition-sink', 'sink', 0, { parents: [1], spec: handOff }),
  node(3, 'counts-repartition-source', 'source', 1, { children: [4], spec: { op: 'source' } }),
  node(4, 'KSTREAM-AGGREGATE-0000000002', 'processor', 1, { children: [5, 6], parents: [3], stores: ['counts'] }),
  node(5, 'KSTREAM-SINK-0000000003', 'sink', 1, { parents: [4], spec: sink('totals') }),
  node(6, 'KSTREAM-SINK-0000000004', 'sink', 1, { parents: [4], spec: sink(() => 'x') }),
  node(7, 'heartbeats', 'source', 0, { children: [1], spec: { op: 'source' } }),
]
const at = (index: number): CompiledNode => nodes[index] as CompiledNode

export const sampleTopology: CompiledTopology = {
  nodes,
  subtopologies: [
    { id: 0, level: 0, nodes: [0, 1, 2, 7], sources: [0, 2], stores: [], global: false, order: 'event-time' },
    { id: 1, level: 1, nodes: [3, 4, 5, 6], sources: [1], stores: ['counts'], global: false, order: 'event-time' },
  ],
  sources: [
    source(0, at(0), { topics: ['words'] }),
    source(1, at(3), { kind: 'boundary', boundary: 0, level: 1 }),
    source(2, at(7), { kind: 'scheduled', schedule: { everyMs: 60_000, cron: undefined, emit: () => [] } }),
  ],
  boundaries: [
    {
      index: 0,
      name: 'counts',
      topic: 'counts-repartition',
      fromSubtopology: 0,
      toSubtopology: 1,
      toSource: 1,
      keySerde: serde,
      valueSerde: serde,
    },
  ],
  stores: new Map([['counts', store('counts')]]),
  globalStores: new Map(),
  levels: 2,
  perCommit: new Map(),
}
