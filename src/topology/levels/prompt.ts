/** Operators that react to a record at once or not at all, whatever time it is, and emit nothing that is older than the record. */
import type { OperatorSpec } from '../operator-spec.ts'

export const promptOperators: readonly OperatorSpec['op'][] = [
  'source',
  'filter',
  'map',
  'mapValues',
  'flatMap',
  'flatMapValues',
  'selectKey',
  'peek',
  'passThrough',
  'branch',
  'nullKeyFilter',
  'sink',
  'handOff',
  'tableSource',
  'tableFilter',
  'tableMapValues',
  'tableToStream',
  'tableGroupBy',
  'tableAggregate',
  'streamAggregate',
  'tableJoin',
  'tableJoinMerge',
]
