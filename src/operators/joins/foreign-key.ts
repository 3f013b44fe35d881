/** The five steps of a foreign-key join; `src/dsl/foreign-key.ts` tells how they hang together. */
import { ByteRange } from '../../base/byte-range.ts'
import type { Serde } from '../../serde/serde.ts'
import type { TimestampedKeyValueStore } from '../../state/contract.ts'
import { identityOf, type Subscription, type SubscriptionAnswer } from '../../topology/serdes/internal-serdes.ts'
import type { SpecOf } from '../../topology/operator-spec.ts'
import { type Change, type Downstream, forward, isPromise, type Maybe, Rec } from '../contract.ts'
import { NodeOperator, type OperatorEnv } from '../node-operator.ts'
import { type Row, type RowReader, RowStore, rowReader } from '../rows.ts'
import { withKeyAndValue, withValue } from '../stateless.ts'

const absent = (value: unknown): value is null | undefined => value === null || value === undefined

/** The function that finds the key has failed for the row: it has no partner, and that is told already. */
const noKey = Symbol('no key')

/** A left row's update: ends the old subscription, makes the new one. */
export class ForeignKeySendOperator extends NodeOperator {
  readonly #spec: SpecOf<'foreignKeySend'>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'foreignKeySend'>) {
    super(env, children)
    this.#spec = spec
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (absent(rec.key)) return this.drop(rec, 'null_key')
    const change = rec.value as Change
    if (this.#spec.versioned && !change.isLatest) return this.drop(rec, 'out_of_order')
    return this.whenDone(this.#foreignKey(change.oldValue, rec, true), rec, (before) =>
      this.whenDone(this.#foreignKey(change.newValue, rec, false), rec, (after) =>
        this.#subscribe(rec, change, before, after),
      ),
    )
  }

  #foreignKey(value: unknown, rec: Rec, isOld: boolean): unknown {
    if (absent(value)) return null
    try {
      const key = this.#spec.foreignKey(value, rec.key, withValue(rec, value))
      return isPromise(key) ? key.then(undefined, (error) => this.#failed(error, rec, isOld)) : (key ?? null)
    } catch (error) {
      return this.#failed(error, rec, isOld)
    }
  }

  #failed(error: unknown, rec: Rec, isOld: boolean): unknown {
    return this.noRow(error, rec, isOld) ?? (isOld ? null : noKey)
  }

  #subscribe(rec: Rec, change: Change, before: unknown, found: unknown): Maybe {
    const after = found === noKey ? null : found
    const primaryKey = this.#spec.primaryKeySerde.serialize(rec.key)
    const hash = absent(change.newValue) ? null : identityOf(this.#spec.leftValueSerde.serialize(change.newValue))
    const partition = this.#spec.throughTopic === true ? this.context.partition : undefined
    const send = ([foreignKey, instruction]: readonly [unknown, Subscription['instruction']]): Maybe => {
      const subscription: Subscription = { instruction, primaryKey, hash, partition }
      return forward(this.children, withKeyAndValue(rec, foreignKey, subscription))
    }
    const steps = this.#spec.leftOuter
      ? this.#leftSteps(change, before, after)
      : this.#innerSteps(change, before, after)
    if (steps.length === 0 && !absent(change.newValue) && found !== noKey) return this.drop(rec, 'null_key')
    return this.inTurn(steps, send)
  }

  #same(a: unknown, b: unknown): boolean {
    if (a === b) return true
    if (absent(a) || absent(b)) return false
    const { foreignKeySerde } = this.#spec
    return Buffer.compare(foreignKeySerde.serialize(a), foreignKeySerde.serialize(b)) === 0
  }

  #leftSteps(change: Change, before: unknown, after: unknown): Array<readonly [unknown, Subscription['instruction']]> {
    if (absent(change.oldValue)) return absent(change.newValue) ? [] : [[after, 'answer']]
    const steps: Array<readonly [unknown, Subscription['instruction']]> = []
    if (!absent(before) && !this.#same(before, after)) steps.push([before, 'unsubscribe'])
    steps.push([after, 'answer'])
    return steps
  }

  #innerSteps(change: Change, before: unknown, after: unknown): Array<readonly [unknown, Subscription['instruction']]> {
    if (absent(change.oldValue) || absent(before)) return absent(after) ? [] : [[after, 'answer-if-found']]
    if (absent(after)) return [[before, 'unsubscribe-and-answer']]
    if (this.#same(before, after)) return [[after, 'answer-again']]
    return [
      [before, 'unsubscribe'],
      [after, 'answer'],
    ]
  }
}

/** Bytes of all subscriptions at a right row, and of one of them. */
function subscriptionPrefix(foreignKey: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + foreignKey.length)
  new DataView(bytes.buffer).setUint32(0, foreignKey.length)
  bytes.set(foreignKey, 4)
  return bytes
}

function subscriptionKey(foreignKey: Uint8Array, primaryKey: Uint8Array): Uint8Array {
  const prefix = subscriptionPrefix(foreignKey)
  const bytes = new Uint8Array(prefix.length + primaryKey.length)
  bytes.set(prefix)
  bytes.set(primaryKey, prefix.length)
  return bytes
}

/** The first bytes behind all that begin with the prefix; undefined when there are none. */
function afterPrefix(prefix: Uint8Array): Uint8Array | undefined {
  const bytes = prefix.slice()
  for (let i = bytes.length - 1; i >= 0; i--) {
    if ((bytes[i] as number) < 255) {
      bytes[i] = (bytes[i] as number) + 1
      return bytes.slice(0, i + 1)
    }
  }
  return undefined
}

/** Keeps the subscriptions at the right rows. */
export class ForeignKeyReceiveOperator extends NodeOperator {
  readonly #store: TimestampedKeyValueStore<unknown, Subscription>
  readonly #serde: Serde<unknown>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'foreignKeyReceive'>) {
    super(env, children)
    this.#store = env.context.store(spec.store) as TimestampedKeyValueStore<unknown, Subscription>
    this.#serde = spec.foreignKeySerde
  }

  process(rec: Rec): Maybe {
    this.enter()
    const subscription = rec.value as Subscription
    if (absent(rec.key))
      return subscription.instruction === 'answer' ? forward(this.children, rec) : this.drop(rec, 'null_key')
    const id = subscriptionKey(this.#serde.serialize(rec.key), subscription.primaryKey)
    const ends = subscription.instruction === 'unsubscribe' || subscription.instruction === 'unsubscribe-and-answer'
    this.#store.put(id, ends ? null : subscription, rec.timestamp)
    return forward(this.children, rec)
  }
}

/** Answers a new subscription with the right row it names. */
export class ForeignKeyJoinOperator extends NodeOperator {
  readonly #rows: RowReader
  readonly #primaryKeySerde: Serde<unknown>
  readonly #throughTopic: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'foreignKeyJoin'>) {
    super(env, children)
    this.#rows = rowReader(spec.right, env.context)
    this.#primaryKeySerde = spec.primaryKeySerde
    this.#throughTopic = spec.throughTopic === true
  }

  process(rec: Rec): Maybe {
    this.enter()
    const { instruction } = rec.value as Subscription
    if (instruction === 'unsubscribe') return
    const found = absent(rec.key) ? undefined : this.#rows.get(rec.key, rec)
    return this.whenDone(found as Row | undefined, rec, (row) => this.#answer(rec, row))
  }

  #answer(rec: Rec, row: Row | undefined): Maybe {
    const { instruction, primaryKey, hash, partition: at } = rec.value as Subscription
    // The deletion of a row before may be answered only now, and be dropped.
    const isMiss = instruction === 'answer-if-found' && row === undefined
    if (isMiss && this.context.operatorTime) return
    const value = instruction === 'unsubscribe-and-answer' ? null : (row?.value ?? null)
    const timestamp = row ? Math.max(rec.timestamp, row.timestamp) : rec.timestamp
    const partition = this.#throughTopic ? at : undefined
    const answer: SubscriptionAnswer = { hash, value, quiet: isMiss || instruction === 'answer-again', partition }
    const key = this.#primaryKeySerde.deserialize(primaryKey)
    const keyRange = ByteRange.of(primaryKey)
    return forward(this.children, new Rec(key, answer, timestamp, rec.headers, rec.origin, keyRange, undefined))
  }
}

/** A right row's update reaches all its subscribers. */
export class ForeignTableJoinOperator extends NodeOperator {
  readonly #spec: SpecOf<'foreignTableJoin'>
  readonly #store: TimestampedKeyValueStore<unknown, Subscription>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'foreignTableJoin'>) {
    super(env, children)
    this.#spec = spec
    this.#store = env.context.store(spec.store) as TimestampedKeyValueStore<unknown, Subscription>
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (absent(rec.key)) return this.drop(rec, 'null_key')
    const change = rec.value as Change
    if (this.#spec.versioned && !change.isLatest) return this.drop(rec, 'out_of_order')
    const prefix = subscriptionPrefix(this.#spec.foreignKeySerde.serialize(rec.key))
    const subscriptions: Subscription[] = []
    for (const [id, row] of this.#store.range(prefix, afterPrefix(prefix))) {
      const bytes = id as Uint8Array
      if (prefix.every((byte, i) => bytes[i] === byte)) subscriptions.push(row.value)
    }
    return this.inTurn(subscriptions, ({ primaryKey, hash, partition: at }) => {
      const partition = this.#spec.throughTopic === true ? at : undefined
      const answer: SubscriptionAnswer = { hash, value: change.newValue ?? null, quiet: false, partition }
      const key = this.#spec.primaryKeySerde.deserialize(primaryKey)
      const keyRange = ByteRange.of(primaryKey)
      return forward(this.children, new Rec(key, answer, rec.timestamp, rec.headers, rec.origin, keyRange, undefined))
    })
  }
}

/** The answer meets the left row; one for a value that the row no longer has is dropped. */
export class ForeignKeyResolveOperator extends NodeOperator {
  readonly #spec: SpecOf<'foreignKeyResolve'>
  readonly #rows: RowReader

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'foreignKeyResolve'>) {
    super(env, children)
    this.#spec = spec
    this.#rows = rowReader(spec.left, env.context)
  }

  process(rec: Rec): Maybe {
    this.enter()
    return this.whenDone(this.#rows.get(rec.key, rec) as Row | undefined, rec, (row) => this.#resolve(rec, row))
  }

  /**
   * Kafka Streams leaves such a result behind: the deletion that was to end it met a newer left row and was dropped. Where rows
   * are not kept and answers come through a topic there may be one: a deletion too many does no harm.
   */
  #hasResult(rec: Rec): boolean {
    const { result, throughTopic } = this.#spec
    if (this.context.operatorTime) return false
    if (result === undefined) return throughTopic === true
    return new RowStore(this.context, result).get(rec.key, rec) !== undefined
  }

  /**
   * The left row has changed since it asked. What it asked then is answered too, unless it was to have no result and asked
   * nothing, because the row before had none to take back either: it was this answer that was to take it back.
   */
  #overtaken(rec: Rec, row: Row | undefined): Maybe {
    if (this.#spec.leftOuter || !this.#hasResult(rec)) return
    if (row === undefined) return forward(this.children, withValue(rec, null))
    return this.whenDone(this.#named(rec, row), rec, (named) =>
      absent(named) ? forward(this.children, withValue(rec, null)) : undefined,
    )
  }

  /** The key that the row names now; none where the function fails, which was told when the row came. */
  #named(rec: Rec, row: Row): unknown {
    try {
      const named = this.#spec.foreignKey(row.value, rec.key, withValue(rec, row.value))
      return isPromise(named) ? named.then(undefined, (error) => this.noRow(error, rec, true)) : named
    } catch (error) {
      return this.noRow(error, rec, true)
    }
  }

  #resolve(rec: Rec, row: Row | undefined): Maybe {
    const { hash, value, quiet } = rec.value as SubscriptionAnswer
    const current = row === undefined ? null : identityOf(this.#spec.leftValueSerde.serialize(row.value))
    if (hash !== current) return this.#overtaken(rec, row)
    if (absent(value) && quiet && !this.#hasResult(rec)) return
    if (absent(row) || (absent(value) && !this.#spec.leftOuter)) return forward(this.children, withValue(rec, null))
    return this.whenDone(this.#spec.joiner(row.value, value ?? null, rec.key), rec, (result) =>
      forward(this.children, withValue(rec, result)),
    )
  }
}
