/** Joins of a stream with a table, and of two tables. */
import type { KeyValueStore } from '../../state/contract.ts'
import { timedKey, timeOfKey, type Waiting } from '../../topology/serdes/internal-serdes.ts'
import type { SpecOf } from '../../topology/operator-spec.ts'
import { writeInt64 } from '../../serde/primitive.ts'
import type { Serde } from '../../serde/serde.ts'
import type { Emission } from '../emission.ts'
import { type CallGate, Change, type Downstream, forward, isPromise, type Maybe, Rec } from '../contract.ts'
import { heldBackOrigin, NodeOperator, type OperatorEnv } from '../node-operator.ts'
import { type Row, type RowReader, rowReader, RowStore, toldAtOf, isChangeable } from '../rows.ts'
import { SortedList } from '../../state/rows/sorted-list.ts'
import { bytesText, byText } from '../text-order.ts'
import { withValue } from '../stateless.ts'

const absent = (value: unknown): value is null | undefined => value === null || value === undefined

interface Held {
  readonly timestamp: number
  readonly text: string
  readonly id: Uint8Array
}

/** Each record with the row of its key. With a grace period records wait, and see the row valid at their time. */
export class StreamTableJoinOperator extends NodeOperator {
  readonly #spec: SpecOf<'streamTableJoin'>
  readonly #rows: RowReader
  readonly #buffer: KeyValueStore<unknown, Waiting> | undefined
  readonly #held = new SortedList<Held>((a, b) => a.timestamp - b.timestamp || byText(a.text, b.text))
  readonly #keySerde: Serde<unknown> | undefined
  #sequence = 0
  #letOut = Number.NEGATIVE_INFINITY

  constructor(
    env: OperatorEnv,
    children: Downstream,
    spec: SpecOf<'streamTableJoin'>,
    keySerde: Serde<unknown> | undefined,
  ) {
    super(env, children)
    this.#spec = spec
    this.#keySerde = keySerde
    this.#rows = rowReader(spec.getter, env.context)
    this.#buffer = spec.grace && (env.context.store(spec.grace.store) as KeyValueStore<unknown, Waiting>)
  }

  init(): void {
    if (!this.#buffer) return
    for (const [id] of this.#buffer.all()) {
      const held = this.#place(id as Uint8Array)
      this.#held.add(held)
      this.#sequence = Math.max(this.#sequence, timeOfKey(held.id.subarray(held.id.length - 8)) + 1)
    }
    this.#wake()
  }

  process(rec: Rec): Maybe {
    this.enter()
    const { grace } = this.#spec
    if (!grace || !this.#buffer) return this.#lookUp(rec)
    if (this.#refused(rec, rec.key)) return
    const watermark = this.timeAt(rec)
    // Too old to wait: it sees the table as it is now known for its time.
    if (absent(rec.key) || rec.timestamp < watermark - grace.ms) return this.#join(rec, rec.key)
    this.#hold(rec)
    return this.#release(this.settledAt(rec), rec)
  }

  onWatermark(watermark: number): Maybe {
    return this.#release(watermark, undefined)
  }

  #lookUp(rec: Rec): Maybe {
    const { foreignKey } = this.#spec
    if (foreignKey === undefined) return this.#refused(rec, rec.key) ? undefined : this.#join(rec, rec.key)
    if (absent(rec.value)) return this.drop(rec, 'null_value')
    return this.#lookUpBy(rec, foreignKey(rec.value, rec.key, rec))
  }

  /** Apart, so that no scope is made for the closure where the record's own key is the table's. */
  #lookUpBy(rec: Rec, foreignKey: unknown): Maybe {
    return this.whenDone(foreignKey, rec, (key) => (this.#refused(rec, key) ? undefined : this.#join(rec, key)))
  }

  #refused(rec: Rec, key: unknown): boolean {
    if (absent(rec.value)) {
      this.drop(rec, 'null_value')
      return true
    }
    if (!absent(key) || this.#spec.leftOuter) return false
    this.drop(rec, 'null_key')
    return true
  }

  #join(rec: Rec, key: unknown): Maybe {
    const asOf = this.#rows.versioned ? rec.timestamp : undefined
    const found = absent(key) ? undefined : this.#rows.get(key, rec, asOf)
    if (isPromise(found)) return this.#meetLater(rec, found)
    return this.#meet(rec, found as Row | undefined)
  }

  #meet(rec: Rec, row: Row | undefined): Maybe {
    if (row === undefined && !this.#spec.leftOuter) return
    this.atWork()
    const other = row?.value ?? null
    if (this.gate !== undefined) return this.#inItsTurn(this.gate, rec, other)
    const joined = this.#spec.joiner(rec.value, other, rec.key)
    if (isPromise(joined)) return this.#tellLater(rec, joined)
    const told = withValue(rec, joined)
    const { only } = this
    return only === undefined ? forward(this.children, told) : only.process(told)
  }

  // Apart, so that no scope is made for the closures where everything is there at once.

  #meetLater(rec: Rec, found: PromiseLike<unknown>): Maybe {
    return this.later(found, rec, (row) => this.#meet(rec, row as Row | undefined))
  }

  #inItsTurn(gate: CallGate, rec: Rec, other: unknown): Maybe {
    return this.#tellLater(
      rec,
      gate.run(rec.origin, () => this.#spec.joiner(rec.value, other, rec.key)),
    )
  }

  #tellLater(rec: Rec, joined: PromiseLike<unknown>): Maybe {
    return this.later(joined, rec, (value) => forward(this.children, withValue(rec, value)))
  }

  #hold(rec: Rec): void {
    const keyBytes = this.#keySerde?.serialize(rec.key) ?? new Uint8Array(0)
    const tail = new Uint8Array(keyBytes.length + 8)
    tail.set(keyBytes)
    writeInt64(tail, keyBytes.length, this.#sequence++)
    const id = timedKey(rec.timestamp, tail)
    const records = [{ value: rec.value, headers: rec.headers, place: 0 }]
    this.#buffer?.put(id, { left: true, key: rec.key, records, told: [] })
    this.#held.add(this.#place(id))
    this.#wake()
  }

  #place(id: Uint8Array): Held {
    return { timestamp: timeOfKey(id), text: bytesText(id), id }
  }

  /** `cause`: the record that comes by; undefined for a timer. */
  #release(watermark: number, cause: Rec | undefined): Maybe {
    const before = this.#letOut
    if (watermark > before) this.#letOut = watermark
    const limit = watermark - (this.#spec.grace?.ms ?? 0)
    const due = this.#held.takeWhile((held) => held.timestamp <= limit)
    this.#wake()
    if (due.length === 0) return
    const origin = cause === undefined ? this.timerOrigin(before) : heldBackOrigin(cause.origin, before)
    return this.inTurn(due, ({ id, timestamp }) => {
      const waiting = this.#buffer?.delete(id)
      const held = waiting?.records[0]
      if (!held) return
      const rec = new Rec(waiting.key, held.value, timestamp, held.headers, origin, undefined, undefined)
      return this.judged(rec, () => this.#join(rec, rec.key))
    })
  }

  heldFrom(): number {
    return this.#held.first?.timestamp ?? Number.POSITIVE_INFINITY
  }

  untoldFrom(): number {
    const first = this.#held.first
    return first === undefined ? Number.POSITIVE_INFINITY : first.timestamp + (this.#spec.grace?.ms ?? 0)
  }

  #wake(): void {
    if (this.#held.first) this.wakeAt(this.untoldFrom())
  }
}

/** One side of a join of two tables: an update meets the other side's row. */
export class TableJoinOperator extends NodeOperator {
  readonly #spec: SpecOf<'tableJoin'>
  readonly #other: RowReader
  /** This side's rows go on without a partner; the other side's do. */
  readonly #mineOuter: boolean
  readonly #otherOuter: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableJoin'>) {
    super(env, children)
    this.#spec = spec
    this.#other = rowReader(spec.other, env.context)
    const left = spec.side === 'left'
    this.#mineOuter = left ? spec.leftOuter : spec.rightOuter
    this.#otherOuter = left ? spec.rightOuter : spec.leftOuter
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (absent(rec.key)) return this.drop(rec, 'null_key')
    const change = rec.value as Change
    if (this.#spec.versioned && !change.isLatest) return this.drop(rec, 'out_of_order')
    return this.whenDone(this.#other.get(rec.key, rec) as Row | undefined, rec, (row) => this.#meet(rec, change, row))
  }

  #meet(rec: Rec, change: Change, row: Row | undefined): Maybe {
    if (row === undefined && !this.#mineOuter) return
    if (row === undefined && absent(change.newValue) && absent(change.oldValue)) return
    const timestamp = row ? Math.max(rec.timestamp, row.timestamp) : rec.timestamp
    return this.whenDone(this.#join(change.newValue, row, rec, false), rec, (newValue) => {
      const old = this.#spec.sendOldValues ? this.#joinOld(change.oldValue, row, rec) : null
      return this.whenDone(old, rec, (oldValue) => {
        const oldTimestamp = row ? Math.max(change.oldTimestamp ?? 0, toldAtOf(row)) : change.oldTimestamp
        const result = new Change(newValue ?? null, oldValue ?? null, change.isLatest, oldTimestamp)
        return forward(
          this.children,
          new Rec(rec.key, result, timestamp, rec.headers, rec.origin, rec.keyRange, undefined),
        )
      })
    })
  }

  /** The joiner may have changed the row that it was given for the new one. */
  #joinOld(mine: unknown, row: Row | undefined, rec: Rec): unknown {
    if (!isChangeable(row?.value)) return this.#join(mine, row, rec, true)
    const stored = this.#other.get(rec.key, rec)
    if (!isPromise(stored)) return this.#join(mine, stored as Row | undefined, rec, true)
    return stored.then((again) => this.#join(mine, again, rec, true))
  }

  #join(mine: unknown, row: Row | undefined, rec: Rec, isOld: boolean): unknown {
    if (absent(mine) && (row === undefined || !this.#otherOuter)) return null
    this.atWork()
    const other = row?.value ?? null
    const { side, joiner } = this.#spec
    try {
      const joined = side === 'left' ? joiner(mine ?? null, other, rec.key) : joiner(other, mine ?? null, rec.key)
      return isPromise(joined)
        ? joined.then(undefined, (error) => this.noRow(error, rec, isOld, this.#spec.sendOldValues))
        : joined
    } catch (error) {
      return this.noRow(error, rec, isOld, this.#spec.sendOldValues)
    }
  }
}

/** The rows of both sides, kept where a store was asked for. */
export class TableJoinMergeOperator extends NodeOperator {
  readonly #rows: RowStore | undefined
  readonly #sendOldValues: boolean
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableJoinMerge'>) {
    super(env, children)
    this.#rows = spec.store && new RowStore(env.context, spec.store)
    this.#sendOldValues = spec.sendOldValues
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    const change = rec.value as Change
    let { isLatest } = change
    if (this.#rows) {
      const put = this.#rows.put(rec.key, change.newValue, rec.timestamp, rec)
      if (put === 'rejected') return this.drop(rec, 'expired')
      if (this.#emission?.notes(rec.key, 0, 0, change.newValue, rec.timestamp, rec.headers)) return
      isLatest = put === 'latest'
    }
    return forward(
      this.children,
      withValue(
        rec,
        new Change(change.newValue, this.#sendOldValues ? change.oldValue : null, isLatest, change.oldTimestamp),
      ),
    )
  }
}
