/** Aggregates in sessions: a record joins all sessions it touches into one. */
import type { Serde } from '../../serde/serde.ts'
import type { SessionStore } from '../../state/contract.ts'
import type { SpecOf } from '../../topology/operator-spec.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import type { Emission } from '../emission.ts'
import { Change, type Downstream, forward, isPromise, type Maybe, Rec } from '../contract.ts'
import type { OperatorEnv } from '../node-operator.ts'
import type { PendingWindow } from './pending-windows.ts'
import { forEachCall, isChangeable } from '../rows.ts'
import { WindowOperator } from './window-operator.ts'

interface Session {
  readonly start: number
  readonly end: number
  readonly value: unknown
}

/** A session told at once has none: what it holds is not of one record alone. */
const noHeaders: Headers = []

export class SessionWindowOperator extends WindowOperator {
  readonly #gap: number
  readonly #grace: number
  readonly #retention: number
  readonly #store: SessionStore<unknown, unknown>
  readonly #emission: Emission | undefined

  constructor(
    env: OperatorEnv,
    children: Downstream,
    spec: SpecOf<'windowAggregate'>,
    keySerde: Serde<unknown>,
    retentionMs = Number.POSITIVE_INFINITY,
  ) {
    super(env, children, spec, keySerde)
    const window = spec.window as Extract<typeof spec.window, { type: 'session' }>
    this.#gap = window.gapMs
    this.#grace = window.graceMs
    this.#retention = retentionMs
    this.#store = env.context.store(spec.store?.name ?? '') as SessionStore<unknown, unknown>
    this.#emission = this.emissionOf(env, spec, ({ key, start, end }) => ({ key, start, end }))
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (rec.key === null || rec.key === undefined) return this.drop(rec, 'null_key')
    const closing = this.closeFor(rec)
    if (closing !== undefined) return closing.then(() => this.#add(rec))
    return this.#add(rec)
  }

  #add(rec: Rec): Maybe {
    const { timestamp } = rec
    const met: Session[] = []
    let start = timestamp
    let end = timestamp
    for (const [from, to, value] of this.#store.findSessions(rec.key, timestamp - this.#gap, timestamp + this.#gap)) {
      if (this.#isOver(to, rec)) continue
      met.push({ start: from, end: to, value })
      start = Math.min(start, from)
      end = Math.max(end, to)
    }
    // Ascending by start: sessions of one key do not overlap, so this is also the order of their ends.
    met.sort((a, b) => a.start - b.start)
    if (this.#closesAt(end) <= this.now(rec)) return this.drop(rec, 'late')
    this.atWork()
    return this.whenDone(this.#merge(met, rec.key), rec, (merged) => {
      this.atWork()
      return this.whenDone(this.#fold(merged, met, rec), rec, (aggregate) => {
        const grows = start !== timestamp || end !== timestamp
        const retractions = grows ? met : []
        const before = grows || !this.spec.sendOldValues || met[0] === undefined ? null : this.#stored(rec.key, met[0])
        // Nothing is taken back before the function has answered: where it fails, sessions stay as they are.
        return this.#after(
          this.inTurn(retractions, (session) => this.#retract(session, rec)),
          () => this.#put(start, end, aggregate, before, rec),
        )
      })
    })
  }

  /**
   * Its final result is told, or is about to be: another one that held its records once more would count them twice. Where
   * updates are told it takes in records for as long as the store keeps it. How far the store has forgotten depends on what
   * else is under way, so the record's own watermark decides.
   */
  #isOver(end: number, rec: Rec): boolean {
    // By times of their own, sessions go on as long as the store has them: that is what Kafka Streams does.
    if (this.clock !== undefined) return false
    return (this.pending ? this.#closesAt(end) : end + this.#retention) <= this.now(rec)
  }

  #after(pending: Maybe, resume: () => Maybe): Maybe {
    return pending === undefined ? resume() : pending.then(resume)
  }

  /** The initial value with each session met, in ascending order. */
  #merge(met: readonly Session[], key: unknown, from = 0, before: unknown = this.spec.init?.() ?? null): unknown {
    let aggregate = before
    for (let i = from; i < met.length; i++) {
      const next = this.spec.merge?.(aggregate, (met[i] as Session).value, key)
      if (isPromise(next)) return next.then((value) => this.#merge(met, key, i + 1, value))
      aggregate = next
    }
    return aggregate
  }

  #fold(merged: unknown, met: readonly Session[], rec: Rec): unknown {
    const { init, fold } = this.spec
    if (init === undefined && (merged === null || merged === undefined)) return rec.value
    if (this.gate === undefined) return fold(merged, rec.value, rec.key, rec)
    const before = forEachCall(merged, () => this.#mergeStored(met, rec.key))
    return this.gate.run(rec.origin, () => {
      const aggregate = before()
      return isPromise(aggregate)
        ? aggregate.then((value) => fold(value, rec.value, rec.key, rec))
        : fold(aggregate, rec.value, rec.key, rec)
    })
  }

  #mergeStored(met: readonly Session[], key: unknown): unknown {
    const stored = met.map((session) => ({ ...session, value: this.#stored(key, session) }))
    return this.#merge(stored, key)
  }

  /** What was told of it: the functions may have changed the object that was read. */
  #stored(key: unknown, { start, end, value }: Session): unknown {
    return isChangeable(value) ? this.#store.fetchSession(key, start, end) : value
  }

  #retract(session: Session, rec: Rec): Maybe {
    const before = this.spec.sendOldValues ? this.#stored(rec.key, session) : null
    this.#store.put(rec.key, session.start, session.end, null)
    const window = { key: rec.key, start: session.start, end: session.end }
    if (this.pending) {
      if (this.isRead) this.putUntold(window, rec)
      this.pending.remove(window, this.#closesAt(session.end))
      return
    }
    if (this.#emission?.notes(rec.key, session.start, session.end, null, session.end, rec.headers)) return
    const change = new Change(null, before)
    return forward(this.children, new Rec(window, change, session.end, noHeaders, rec.origin, undefined, undefined))
  }

  /** `before`: what the session was that has the same ends. */
  #put(start: number, end: number, aggregate: unknown, before: unknown, rec: Rec): Maybe {
    this.#store.put(rec.key, start, end, aggregate)
    const window = { key: rec.key, start, end }
    if (this.pending) {
      if (this.isRead) this.putUntold(window, rec)
      this.expect(window, this.#closesAt(end))
      return
    }
    if (this.#emission?.notes(rec.key, start, end, aggregate, end, rec.headers)) return
    const change = new Change(aggregate ?? null, before)
    return forward(this.children, new Rec(window, change, end, noHeaders, rec.origin, undefined, undefined))
  }

  /** Both ends belong to a session, and a record up to the gap after its end still joins it. */
  #closesAt(end: number): number {
    return end + this.#gap + this.#grace + 1
  }

  protected *kept(): Iterable<readonly [PendingWindow, number]> {
    for (const [key, start, end] of this.#store.all()) yield [{ key, start, end }, this.#closesAt(end)]
  }

  protected final(window: PendingWindow): { value: unknown; timestamp: number } | undefined {
    const value = this.#store.fetchSession(window.key, window.start, window.end)
    return value === undefined || value === null ? undefined : { value, timestamp: window.end }
  }
}
