/** Joins of two streams within a window of time. */
import type { WindowStore } from '../../state/contract.ts'
import type { SpecOf } from '../../topology/operator-spec.ts'
import type { Waiting } from '../../topology/serdes/internal-serdes.ts'
import { type Downstream, forward, type Maybe, Rec } from '../contract.ts'
import { heldBackOrigin, NodeOperator, OperatorClock, type OperatorEnv } from '../node-operator.ts'
import type { WaitingRecords } from './waiting-records.ts'

const absent = (value: unknown): value is null | undefined => value === null || value === undefined

/** Remembers one side's records for the other. The join comes first, so that a stream joined with itself pairs each record with itself once. */
export class JoinWindowOperator extends NodeOperator {
  readonly #store: WindowStore<unknown, unknown>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'joinWindow'>) {
    super(env, children)
    this.#store = env.context.store(spec.store) as WindowStore<unknown, unknown>
  }

  process(rec: Rec): Maybe {
    this.enter()
    const joined = forward(this.children, rec)
    if (joined !== undefined) return joined.then(() => this.#remember(rec))
    this.#remember(rec)
  }

  #remember(rec: Rec): void {
    if (absent(rec.key) || absent(rec.value)) return
    this.#store.put(rec.key, rec.value, rec.timestamp)
  }
}

/** When a record without a partner has waited for long enough: then its window and the grace have passed. */
export function deadlinesOf(spec: SpecOf<'streamJoin'>): (timestamp: number, left: boolean) => number {
  const { beforeMs, afterMs, graceMs } = spec
  return (timestamp, left) => timestamp + (left ? afterMs : beforeMs) + graceMs + 1
}

export class StreamJoinOperator extends NodeOperator {
  readonly #spec: SpecOf<'streamJoin'>
  readonly #other: WindowStore<unknown, unknown>
  readonly #waiting: WaitingRecords | undefined
  readonly #left: boolean
  /** How far back and ahead partners lie, seen from this side. */
  readonly #back: number
  readonly #ahead: number
  #lookedAt = Number.NEGATIVE_INFINITY

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'streamJoin'>, waiting: WaitingRecords | undefined) {
    super(env, children)
    this.#spec = spec
    this.#left = spec.side === 'left'
    this.#back = this.#left ? spec.beforeMs : spec.afterMs
    this.#ahead = this.#left ? spec.afterMs : spec.beforeMs
    this.#other = env.context.store(spec.otherStore) as WindowStore<unknown, unknown>
    this.#waiting = waiting
    waiting?.remembers(this.#left ? 'right' : 'left', this.#other)
  }

  /** Both sides of a join have one clock. */
  protected override ownClock(env: OperatorEnv): OperatorClock {
    const name = String(env.node.children[0])
    const clock = env.clocks.get(name) ?? new OperatorClock()
    env.clocks.set(name, clock)
    return clock
  }

  init(): void {
    this.#waiting?.init()
    this.#wake()
  }

  process(rec: Rec): Maybe {
    this.enter()
    const watermark = this.timeAt(rec)
    if (absent(rec.value)) return this.drop(rec, 'null_value')
    if (absent(rec.key))
      return this.#spec.outer ? this.#unmatched(rec.key, rec.value, this.#left, rec) : this.drop(rec, 'null_key')
    if (this.context.operatorTime && rec.timestamp < watermark) return this.#match(rec)
    const overdue = this.#overdue(this.settledAt(rec), rec)
    return overdue === undefined ? this.#match(rec) : this.#matchBehind(overdue, rec)
  }

  /** Apart, so that no scope is made for the closure where nothing has to wait. */
  #matchBehind(overdue: Promise<void>, rec: Rec): Maybe {
    return overdue.then(() => this.#match(rec))
  }

  onWatermark(watermark: number): Maybe {
    return this.#overdue(watermark, undefined)
  }

  #join(mine: unknown, other: unknown, key: unknown): unknown {
    this.atWork()
    return this.#left ? this.#spec.joiner(mine, other, key) : this.#spec.joiner(other, mine, key)
  }

  /** Only pairs whose window and grace are not over are joined: what the clock has passed is not remembered for certain. */
  #match(rec: Rec): Maybe {
    if (this.clock)
      this.clock[this.#left ? 'left' : 'right'] = Math.max(this.clock[this.#left ? 'left' : 'right'], rec.timestamp)
    if (rec.timestamp + this.#ahead + this.#spec.graceMs < this.timeAt(rec)) return this.drop(rec, 'late')
    const from = Math.max(0, rec.timestamp - this.#back)
    const to = rec.timestamp + this.#ahead
    const partners = this.#untold(rec.key, this.#remembered([...this.#other.fetchRange(rec.key, from, to)]))
    if (partners.length === 0) return this.#spec.outer ? this.#alone(rec) : undefined
    return this.inTurn(partners, ([timestamp, row]) => {
      this.#waiting?.matched(rec.key, timestamp, !this.#left)
      const joined = this.inItsTurn(rec, () => this.#join(rec.value, row.value, rec.key))
      return this.whenDone(joined, rec, (value) => this.#send(rec, value, Math.max(rec.timestamp, timestamp)))
    })
  }

  /** Without those that were told to have no partner, which is not taken back. */
  #untold<T extends readonly [timestamp: number, row: unknown]>(key: unknown, partners: T[]): T[] {
    const waiting = this.#waiting
    // By times of their own, joins take back what they told: that is what Kafka Streams does.
    if (waiting === undefined || this.clock !== undefined || partners.length === 0) return partners
    let at = Number.NaN
    let place = 0
    let told: Waiting['told'] = []
    let next = 0
    return partners.filter(([timestamp]) => {
      place++
      if (timestamp !== at) {
        at = timestamp
        place = 0
        told = waiting.toldOf(key, timestamp, !this.#left)
        next = 0
      }
      if (told === 'all') return false
      // Both are in the order in which their side remembered them.
      while (next < told.length && (told[next] as number) < place) next++
      return told[next] !== place
    })
  }

  /** By a time of its own, a join remembers less: what is newer than the other side's newest record less the window. */
  #remembered<T extends readonly [timestamp: number, row: unknown]>(partners: T[]): T[] {
    const { clock } = this
    if (clock === undefined) return partners
    const { beforeMs, afterMs, graceMs } = this.#spec
    const newest = this.#left ? clock.right : clock.left
    return partners.filter(([timestamp]) => timestamp > newest - (beforeMs + afterMs + graceMs))
  }

  #send(rec: Rec, value: unknown, timestamp: number): Maybe {
    return forward(this.children, new Rec(rec.key, value, timestamp, rec.headers, rec.origin, rec.keyRange, undefined))
  }

  /** No partner yet: it waits until its window and the grace have passed, unless others of its time were told so. */
  #alone(rec: Rec): Maybe {
    const waiting = this.#waiting
    if (this.clock === undefined && waiting?.addToTold(rec, this.#left))
      return this.#unmatched(rec.key, rec.value, this.#left, rec)
    if (waiting === undefined) return
    waiting.add(rec, this.#left)
    this.wakeAt(waiting.deadlineOf(rec.timestamp, this.#left))
  }

  /** `cause`: the record that comes by; undefined for a timer. */
  #overdue(watermark: number, cause: Rec | undefined): Maybe {
    const before = this.#lookedAt
    if (watermark > this.#lookedAt) this.#lookedAt = watermark
    const waiting = this.#waiting
    const { beforeMs, afterMs, graceMs } = this.#spec
    if (!waiting) return
    // Results of timers may be old when they come, and those of the other side come with them, at the same instant.
    if (cause !== undefined && this.clock === undefined && watermark <= waiting.lookedAt) return
    if (watermark > waiting.lookedAt) waiting.lookedAt = watermark
    waiting.forget(watermark - beforeMs - afterMs - graceMs)
    if (waiting.size === 0) return
    const due = waiting.takeDue(watermark)
    this.#wake()
    if (due.length === 0) return
    const origin = cause === undefined ? this.timerOrigin(before) : heldBackOrigin(cause.origin, before)
    // By times of their own, joins give them those of the record that lets them go: that is what Kafka Streams does.
    const given = this.clock === undefined ? undefined : cause?.headers
    const records = due.flatMap(({ timestamp, waiting: held }) =>
      held.records.map(({ value, headers }) => ({
        left: held.left,
        rec: new Rec(held.key, value, timestamp, given ?? headers, origin, undefined, undefined),
      })),
    )
    return this.inTurn(records, ({ left, rec }) =>
      this.judged(rec, () => this.#unmatched(rec.key, rec.value, left, rec)),
    )
  }

  #unmatched(key: unknown, value: unknown, left: boolean, rec: Rec): Maybe {
    this.atWork()
    const { joiner } = this.#spec
    const joined = this.inItsTurn(rec, () => (left ? joiner(value, null, key) : joiner(null, value, key)))
    return this.whenDone(joined, rec, (result) => this.#send(rec, result, rec.timestamp))
  }

  heldFrom(): number {
    return this.#waiting?.oldest ?? Number.POSITIVE_INFINITY
  }

  #wake(): void {
    if (this.#waiting === undefined || this.#waiting.size === 0) return
    // At that very time, and not before: joins below it find what it tells, whatever they are due to tell themselves.
    this.wakeAt(this.#waiting.nextDeadline)
  }
}

/** An inner join of a stream with itself, with one memory: new with old, old with new, and the record with itself. */
export class SelfJoinOperator extends NodeOperator {
  readonly #spec: SpecOf<'selfJoin'>
  readonly #store: WindowStore<unknown, unknown>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'selfJoin'>) {
    super(env, children)
    this.#spec = spec
    this.#store = env.context.store(spec.store) as WindowStore<unknown, unknown>
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (absent(rec.key)) return this.drop(rec, 'null_key')
    if (absent(rec.value)) return this.drop(rec, 'null_value')
    const { beforeMs, afterMs, graceMs, joiner, outer } = this.#spec
    const { key, timestamp } = rec
    const now = this.timeAt(rec)
    // As late as it would be to each side of a join that keeps two memories: being optimized changes no result.
    const byWatermark = this.clock === undefined
    const isLateLeft = byWatermark && timestamp + afterMs + graceMs < now
    const isLateRight = byWatermark && timestamp + beforeMs + graceMs < now
    if (isLateLeft && isLateRight) return this.drop(rec, 'late')
    const remembered = beforeMs + afterMs + graceMs
    const near = (before: number, after: number): Array<readonly [at: number, row: { readonly value: unknown }]> => {
      const rows = [...this.#store.fetchRange(key, Math.max(0, timestamp - before), timestamp + after)]
      return byWatermark ? rows : rows.filter(([at]) => at > now - remembered)
    }
    const pairs: Array<readonly [left: unknown, right: unknown, at: number]> = []
    if (!isLateLeft) for (const [at, row] of near(beforeMs, afterMs)) pairs.push([rec.value, row.value, at])
    // The record meets itself before what is newer; by a time of its own, one that is too far behind does not any more.
    let meetsItself = byWatermark ? !isLateRight || outer : timestamp > now - Math.max(2, remembered) + 1
    const meetItself = (): void => {
      if (meetsItself) pairs.push([rec.value, rec.value, timestamp])
      meetsItself = false
    }
    if (!isLateRight) {
      for (const [at, row] of near(afterMs, beforeMs)) {
        if (at > timestamp) meetItself()
        pairs.push([row.value, rec.value, at])
      }
    }
    meetItself()
    return this.inTurn(pairs, ([left, right, at]) => {
      this.atWork()
      const joined = this.inItsTurn(rec, () => joiner(left, right, key))
      return this.whenDone(joined, rec, (value) =>
        forward(
          this.children,
          new Rec(key, value, Math.max(timestamp, at), rec.headers, rec.origin, rec.keyRange, undefined),
        ),
      )
    })
  }
}
