/**
 * Aggregates in sliding windows: one window ends at each record, and one begins right after each record once another
 * falls into it, so that every set of records at most the difference apart is exactly one window's content.
 */
import type { Serde } from '../../serde/serde.ts'
import type { ValueAndTimestamp, WindowStore } from '../../state/contract.ts'
import type { SpecOf } from '../../topology/operator-spec.ts'
import { type Emission, toldAt } from '../emission.ts'
import { type CallGate, Change, type Downstream, forward, isPromise, type Maybe, Rec } from '../contract.ts'
import type { OperatorEnv } from '../node-operator.ts'
import type { PendingWindow } from './pending-windows.ts'
import { forEachCall, isChangeable } from '../rows.ts'
import { WindowOperator } from './window-operator.ts'

type Row = ValueAndTimestamp<unknown>

interface Step {
  readonly start: number
  /** What the window holds so far. */
  readonly row: Row | undefined
  /** False: the window takes over what is in it already, the record itself is not in it. */
  readonly adds: boolean
  /** The window that `row` was read from, where it is another one. */
  readonly from?: number
}

export class SlidingWindowOperator extends WindowOperator {
  readonly #difference: number
  readonly #grace: number
  readonly #store: WindowStore<unknown, unknown>
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'windowAggregate'>, keySerde: Serde<unknown>) {
    super(env, children, spec, keySerde)
    const window = spec.window as Extract<typeof spec.window, { type: 'sliding' }>
    this.#difference = window.differenceMs
    this.#grace = window.graceMs
    this.#store = env.context.store(spec.store?.name ?? '') as WindowStore<unknown, unknown>
    this.#emission = this.emissionOf(env, spec, ({ key, start }) => ({ key, start, end: start + this.#difference }))
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (rec.key === null || rec.key === undefined) return this.drop(rec, 'null_key')
    if (rec.value === null || (rec.value === undefined && this.spec.readsValue)) return this.drop(rec, 'null_value')
    const closing = this.closeFor(rec)
    if (closing !== undefined) return closing.then(() => this.#add(rec))
    return this.#add(rec)
  }

  #add(rec: Rec): Maybe {
    const open = this.now(rec) - this.#grace
    if (rec.timestamp + this.#difference < open) return this.drop(rec, 'late')
    const steps = rec.timestamp < this.#difference ? this.#earlySteps(rec) : this.#steps(rec)
    const isOver = (step: Step): boolean => step.adds && step.start + this.#difference < open
    if (steps.some(isOver)) this.drop(rec, 'late_window')
    return this.inTurn(steps, (step) => {
      if (isOver(step)) return
      return step.adds ? this.#fold(step, rec) : this.#put(step.start, step.row as Row, undefined, rec)
    })
  }

  /** Existing windows latest first, the previous record's right window, the own left one, the own right one. */
  #steps(rec: Rec): Step[] {
    const { timestamp: at } = rec
    const difference = this.#difference
    const steps: Step[] = []
    const starts = new Set<number>()
    let left: Row | undefined
    let leftStart = 0
    let right: Row | undefined
    let rightStart = 0
    let leftExists = false
    let rightExists = false
    let previous: number | undefined
    for (const [start, row] of this.#store.fetchRange(rec.key, Math.max(0, at - 2 * difference), at + 1, true)) {
      starts.add(start)
      const end = start + difference
      if (start === at + 1) {
        rightExists = true
      } else if (end > at) {
        if (right === undefined) rightStart = start
        right ??= row
        steps.push({ start, row, adds: true })
      } else if (end === at) {
        leftExists = true
        steps.push({ start, row, adds: true })
        if (row.timestamp >= at) return steps
        previous = row.timestamp
      } else {
        left = row
        leftStart = start
        previous = row.timestamp
        break
      }
    }
    if (previous !== undefined && !starts.has(previous + 1) && previous + 1 + difference >= at) {
      steps.push({ start: previous + 1, row: undefined, adds: true })
      // The own left window is that very window when the previous record lies just outside of it.
      if (previous + 1 === at - difference) leftExists = true
    }
    if (!leftExists) {
      const holdsPrevious = previous !== undefined && at - difference <= previous
      const row = holdsPrevious && left ? { value: left.value, timestamp: at } : undefined
      steps.push({ start: at - difference, row, adds: true, from: leftStart })
    }
    if (!rightExists && right !== undefined && right.timestamp > at)
      steps.push({ start: at + 1, row: this.#apart(rec.key, rightStart, right), adds: false })
    return steps
  }

  /** Of the window that begins there: the fold of that one may change the object that was read. */
  #apart(key: unknown, start: number, row: Row): Row | undefined {
    return isChangeable(row.value) ? this.#store.fetch(key, start) : row
  }

  /** Records before the first whole window share the window [0, difference]. */
  #earlySteps(rec: Rec): Step[] {
    const { timestamp: at } = rec
    const steps: Step[] = []
    const starts = new Set<number>()
    let combined: Row | undefined
    let right: Row | undefined
    let rightStart = 0
    let rightExists = false
    let previous: number | undefined
    for (const [start, row] of this.#store.fetchRange(rec.key, 0, at + 1)) {
      starts.add(start)
      if (start === 0) {
        combined = row
        if (row.timestamp < at) previous = row.timestamp
      } else if (start <= at) {
        right = row
        rightStart = start
        steps.push({ start, row, adds: true })
      } else {
        rightExists = true
      }
    }
    if (right === undefined && combined !== undefined && combined.timestamp > at) right = combined
    if (!rightExists && right !== undefined && right.timestamp > at)
      steps.push({ start: at + 1, row: this.#apart(rec.key, rightStart, right), adds: false })
    if (previous !== undefined && !starts.has(previous + 1))
      steps.push({ start: previous + 1, row: undefined, adds: true })
    steps.push({ start: 0, row: combined, adds: true })
    return steps
  }

  #fold(step: Step, rec: Rec): Maybe {
    const { init, fold } = this.spec
    const old = step.row === undefined ? (init?.() ?? null) : step.row.value
    this.atWork()
    const isFirst = init === undefined && (old === null || old === undefined)
    const aggregate = isFirst
      ? rec.value
      : this.gate === undefined
        ? fold(old, rec.value, rec.key, rec)
        : this.#inItsTurn(this.gate, step, old, rec)
    const timestamp = step.row === undefined ? rec.timestamp : Math.max(rec.timestamp, step.row.timestamp)
    // One that takes over what another holds was not told before.
    const before = step.from === undefined ? step.row : undefined
    if (isPromise(aggregate))
      return this.later(aggregate, rec, (value) => this.#put(step.start, { value, timestamp }, before, rec))
    return this.#put(step.start, { value: aggregate, timestamp }, before, rec)
  }

  #inItsTurn(gate: CallGate, { start, row, from = start }: Step, old: unknown, rec: Rec): Promise<unknown> {
    const { init, fold } = this.spec
    const stored = (): unknown => (row === undefined ? init?.() : this.#store.fetch(rec.key, from)?.value) ?? null
    const before = forEachCall(old, stored)
    return gate.run(rec.origin, () => fold(before(), rec.value, rec.key, rec))
  }

  #put(start: number, row: Row, old: Row | undefined, rec: Rec): Maybe {
    const tellsOld = this.spec.sendOldValues && this.pending === undefined && old !== undefined
    const stored = tellsOld ? this.#apart(rec.key, start, old) : old
    this.#store.put(rec.key, row.value, start, row.timestamp)
    const window = { key: rec.key, start, end: start + this.#difference }
    if (this.pending) {
      if (this.isRead) this.putUntold(window, rec)
      this.expect(window, this.#closesAt(start))
      return
    }
    const { key, headers } = rec
    if (this.#emission?.notes(key, start, 0, row.value, toldAt(rec, row.value, row.timestamp), headers)) return
    const change = new Change(row.value ?? null, this.spec.sendOldValues ? (stored?.value ?? null) : null)
    return forward(this.children, new Rec(window, change, row.timestamp, headers, rec.origin, undefined, undefined))
  }

  /** The end belongs to the window: it closes one instant after its grace. */
  #closesAt(start: number): number {
    return start + this.#difference + this.#grace + 1
  }

  protected *kept(): Iterable<readonly [PendingWindow, number]> {
    for (const [key, start] of this.#store.all())
      yield [{ key, start, end: start + this.#difference }, this.#closesAt(start)]
  }

  protected final(window: PendingWindow): Row | undefined {
    return this.#store.fetch(window.key, window.start)
  }
}
