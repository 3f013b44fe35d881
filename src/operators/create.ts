/** From what a node is to the operator that does it. */
import { unreachable } from '../base/assert.ts'
import type { KeyValueStore, StoreSpec } from '../state/contract.ts'
import type { Waiting } from '../topology/serdes/internal-serdes.ts'
import type { Getter, OperatorSpec, SpecOf } from '../topology/operator-spec.ts'
import { StreamAggregateOperator } from './aggregate.ts'
import type { Downstream, Operator } from './contract.ts'
import * as foreign from './joins/foreign-key.ts'
import type { OperatorEnv } from './node-operator.ts'
import { ProcessOperator } from './processor/process.ts'
import { SessionWindowOperator } from './windows/session-window.ts'
import type { KnownSerdes } from '../topology/serdes/known-serdes.ts'
import { HandOffOperator, SinkOperator } from './sink.ts'
import { SlidingWindowOperator } from './windows/sliding-window.ts'
import * as stateless from './stateless.ts'
import { deadlinesOf, JoinWindowOperator, SelfJoinOperator, StreamJoinOperator } from './joins/stream-join.ts'
import { WaitingRecords } from './joins/waiting-records.ts'
import { SuppressOperator } from './suppress.ts'
import * as table from './table.ts'
import { StreamTableJoinOperator, TableJoinMergeOperator, TableJoinOperator } from './joins/table-join.ts'
import { TimeWindowOperator } from './windows/time-window.ts'

/** What operators of one task share. */
export interface TaskParts {
  specOf(store: string): StoreSpec
  /** Serdes that wrote the bytes that records still carry when they come to this node. */
  known: KnownSerdes
  /** Waiting records of a join, made once for its two sides. */
  readonly waiting: Map<string, WaitingRecords>
}

export function createOperator(spec: OperatorSpec, env: OperatorEnv, children: Downstream, parts: TaskParts): Operator {
  switch (spec.op) {
    case 'source':
    case 'passThrough':
      return new stateless.PassThroughOperator(env, children)
    case 'filter':
      return new stateless.FilterOperator(env, children, spec)
    case 'map':
      return new stateless.MapOperator(env, children, spec)
    case 'mapValues':
      return new stateless.MapValuesOperator(env, children, spec)
    case 'flatMap':
      return new stateless.FlatMapOperator(env, children, spec)
    case 'flatMapValues':
      return new stateless.FlatMapValuesOperator(env, children, spec)
    case 'selectKey':
      return new stateless.SelectKeyOperator(env, children, spec)
    case 'peek':
      return new stateless.PeekOperator(env, children, spec)
    case 'branch':
      return new stateless.BranchOperator(env, children, spec)
    case 'nullKeyFilter':
      return new stateless.NullKeyFilterOperator(env, children, spec)
    case 'sink':
      return new SinkOperator(env, children, spec, parts.known)
    case 'handOff':
      return new HandOffOperator(env, children, spec, parts.known)
    case 'process':
      return new ProcessOperator(env, children, spec, parts.specOf)
    default:
      return createStateful(spec, env, children, parts)
  }
}

type Stateful = Exclude<
  OperatorSpec,
  {
    op:
      | 'source'
      | 'passThrough'
      | 'filter'
      | 'map'
      | 'mapValues'
      | 'flatMap'
      | 'flatMapValues'
      | 'selectKey'
      | 'peek'
      | 'branch'
      | 'nullKeyFilter'
      | 'sink'
      | 'handOff'
      | 'process'
  }
>

function createStateful(spec: Stateful, env: OperatorEnv, children: Downstream, parts: TaskParts): Operator {
  switch (spec.op) {
    case 'tableSource':
      return new table.TableSourceOperator(env, children, spec)
    case 'globalPut':
      return new table.GlobalPutOperator(env, children, spec)
    case 'tableFilter':
      return new table.TableFilterOperator(env, children, spec)
    case 'tableMapValues':
      return new table.TableMapValuesOperator(env, children, spec)
    case 'tableToStream':
      return new stateless.TableToStreamOperator(env, children)
    case 'tableGroupBy':
      return new table.TableGroupByOperator(env, children, spec)
    case 'tableAggregate':
      return new table.TableAggregateOperator(env, children, spec)
    case 'streamAggregate':
      return new StreamAggregateOperator(env, children, spec)
    case 'windowAggregate':
      return createWindowed(spec, env, children, parts)
    case 'suppress':
      return new SuppressOperator(env, children, spec, parts.specOf(spec.store).keySerde)
    case 'joinWindow':
      return new JoinWindowOperator(env, children, spec)
    case 'streamJoin':
      return new StreamJoinOperator(env, children, spec, waitingOf(spec, env, parts))
    case 'selfJoin':
      return new SelfJoinOperator(env, children, spec)
    case 'streamTableJoin':
      return new StreamTableJoinOperator(
        env,
        children,
        spec,
        spec.grace && parts.specOf(leafStore(spec.getter)).keySerde,
      )
    case 'tableJoin':
      return new TableJoinOperator(env, children, spec)
    case 'tableJoinMerge':
      return new TableJoinMergeOperator(env, children, spec)
    case 'foreignKeySend':
      return new foreign.ForeignKeySendOperator(env, children, spec)
    case 'foreignKeyReceive':
      return new foreign.ForeignKeyReceiveOperator(env, children, spec)
    case 'foreignKeyJoin':
      return new foreign.ForeignKeyJoinOperator(env, children, spec)
    case 'foreignTableJoin':
      return new foreign.ForeignTableJoinOperator(env, children, spec)
    case 'foreignKeyResolve':
      return new foreign.ForeignKeyResolveOperator(env, children, spec)
    default:
      return unreachable(spec, 'operator')
  }
}

/** The store that a getter reads in the end. */
function leafStore(getter: Getter): string {
  if (getter.kind === 'store') return getter.store
  return leafStore(getter.kind === 'join' ? getter.left : getter.parent)
}

function createWindowed(
  spec: SpecOf<'windowAggregate'>,
  env: OperatorEnv,
  children: Downstream,
  parts: TaskParts,
): Operator {
  const { keySerde, retentionMs } = parts.specOf(spec.store?.name ?? '')
  switch (spec.window.type) {
    case 'session':
      return new SessionWindowOperator(env, children, spec, keySerde, retentionMs)
    case 'sliding':
      return new SlidingWindowOperator(env, children, spec, keySerde)
    default:
      return new TimeWindowOperator(env, children, spec, keySerde)
  }
}

function waitingOf(spec: SpecOf<'streamJoin'>, env: OperatorEnv, parts: TaskParts): WaitingRecords | undefined {
  if (spec.waitingStore === undefined) return undefined
  const known = parts.waiting.get(spec.waitingStore)
  if (known) return known
  const store = env.context.store(spec.waitingStore) as KeyValueStore<unknown, Waiting>
  const waiting = new WaitingRecords(store, parts.specOf(spec.otherStore).keySerde, deadlinesOf(spec))
  parts.waiting.set(spec.waitingStore, waiting)
  return waiting
}
