/** What tumbling, hopping, sliding, unlimited and session aggregates share: final results and quiet input. */
import type { KeyValueStore } from '../../state/contract.ts'
import type { Serde } from '../../serde/serde.ts'
import { heldBackBy } from '../../topology/levels/held-back.ts'
import type { SpecOf, WindowSpec } from '../../topology/operator-spec.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { Change, type Downstream, forward, type Maybe, type Origin, Rec } from '../contract.ts'
import { DeferOperator } from '../defer.ts'
import { heldBackOrigin, NodeOperator, type OperatorEnv } from '../node-operator.ts'
import { type PendingWindow, PendingWindows } from './pending-windows.ts'
import { QuietInput } from '../quiet/quiet-input.ts'
import { bytesText } from '../text-order.ts'

const noHeaders: Headers = []

export abstract class WindowOperator extends NodeOperator {
  protected readonly spec: SpecOf<'windowAggregate'>
  protected readonly pending: PendingWindows | undefined
  readonly #quiet: QuietInput | undefined
  /** The ways to deeper stages, which read rows that are not told yet. */
  readonly #rowWays: Downstream
  /** There are any. */
  protected readonly isRead: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'windowAggregate'>, keySerde: Serde<unknown>) {
    super(env, children)
    this.spec = spec
    this.#rowWays = children.filter((child) => child instanceof DeferOperator && child.tellsRows)
    this.isRead = this.#rowWays.length > 0
    const progressStore = env.node.hiddenStores[0]
    if (spec.emit === 'close' && progressStore !== undefined) {
      const progress = env.context.store(progressStore) as KeyValueStore<unknown, unknown>
      this.pending = new PendingWindows(
        progress,
        delayOf(spec.window),
        this.namesKeys ? (key) => bytesText(keySerde.serialize(key)) : () => '',
      )
    }
    const { closeAfterIdleMs = undefined, waitMs = 0 } = spec.window.type === 'unlimited' ? {} : spec.window
    if (this.pending && closeAfterIdleMs !== undefined)
      this.#quiet = new QuietInput(this, env.context, closeAfterIdleMs, waitMs)
  }

  /** False where one entry stands for the windows of all keys that begin at the same time. */
  protected get namesKeys(): boolean {
    return true
  }

  init(): void {
    if (!this.pending) return
    let newest = Number.NEGATIVE_INFINITY
    for (const [window, closesAt] of this.kept()) {
      if (closesAt <= this.pending.closedUpTo) continue
      this.pending.add(window, closesAt)
      newest = Math.max(newest, window.start)
    }
    if (newest !== Number.NEGATIVE_INFINITY) this.#quiet?.begins(newest)
    this.wakeAt(this.pending.nextClose)
  }

  /** All windows in the store, with the time at which they close. */
  protected abstract kept(): Iterable<readonly [PendingWindow, number]>

  /** The final value of a window and its timestamp; undefined when there is none. */
  protected abstract final(window: PendingWindow): { readonly value: unknown; readonly timestamp: number } | undefined

  /** The time by which lateness is judged. */
  protected now(rec: Rec): number {
    const time = this.timeAt(rec)
    const closed = this.pending?.closedUpTo
    return closed !== undefined && closed > time ? closed : time
  }

  /**
   * With a clock of its own, tells the results that this record makes final, before it is added to its own windows. By
   * the watermark they are told between records, operator after operator, so that a window fed by windows gets the last
   * of their results before it closes itself.
   */
  protected closeFor(rec: Rec): Maybe {
    const { pending } = this
    if (!pending) return
    this.#quiet?.arrived(this.timeAt(rec), rec.timestamp)
    const watermark = this.settledAt(rec)
    if (this.clock === undefined || watermark < pending.nextClose) return
    const before = pending.closedUpTo
    return this.#tell(pending.close(watermark), heldBackOrigin(rec.origin, before), rec.headers)
  }

  onWatermark(watermark: number): Maybe {
    return this.#closeUpTo(watermark)
  }

  onWallClock(nowMs: number): Maybe {
    const { pending } = this
    const time = pending && this.#quiet?.timeAt(nowMs)
    if (time === undefined) return
    const told = this.#closeUpTo(time)
    this.#quiet?.waitsFor(pending?.nextClose ?? Number.POSITIVE_INFINITY, time, nowMs)
    return told
  }

  heldFrom(): number {
    return (this.pending?.nextClose ?? Number.POSITIVE_INFINITY) - (heldBackBy(this.spec, true) ?? 0)
  }

  untoldFrom(): number {
    return this.pending?.nextClose ?? Number.POSITIVE_INFINITY
  }

  #closeUpTo(time: number): Maybe {
    const { pending } = this
    if (!pending) return
    const before = pending.closedUpTo
    const closed = pending.close(time)
    this.wakeAt(pending.nextClose)
    return this.#tell(closed, this.timerOrigin(before), noHeaders)
  }

  #tell(windows: readonly PendingWindow[], origin: Origin, headers: Headers): Maybe {
    if (windows.length === 0) return
    this.atWork()
    return this.inTurn(windows, (window) => this.tellFinal(window, origin, headers))
  }

  protected tellFinal(window: PendingWindow, origin: Origin, headers: Headers): Maybe {
    const row = this.final(window)
    if (row !== undefined) return this.tellRow(window, row, origin, headers)
  }

  protected tellRow(
    window: PendingWindow,
    row: { readonly value: unknown; readonly timestamp: number },
    origin: Origin,
    headers: Headers,
  ): Maybe {
    const change = new Change(row.value ?? null, null)
    return forward(this.children, new Rec(window, change, row.timestamp, headers, origin, undefined, undefined))
  }

  /** A row was put that is told later: a deeper stage reads it as it was until it has come here. */
  protected putUntold(window: PendingWindow, { timestamp, headers, origin }: Rec): void {
    void forward(this.#rowWays, new Rec(window, null, timestamp, headers, origin, undefined, undefined))
  }

  protected expect(window: PendingWindow, closesAt: number): void {
    const { pending } = this
    if (!pending || closesAt <= pending.closedUpTo) return
    pending.add(window, closesAt)
    this.wakeAt(closesAt)
  }
}

/** From the end of a window until it closes. */
function delayOf(window: WindowSpec): number {
  switch (window.type) {
    case 'time':
      return window.graceMs
    case 'sliding':
      return window.graceMs + 1
    case 'session':
      return window.gapMs + window.graceMs + 1
    case 'unlimited':
      return 0
  }
}
