/**
 * All that a test runs, on one thread: applications and the broker between them, on a loop with a clock of its own. It is
 * led from one settled state to the next: whoever feeds it or moves its clock gets it back when nothing is left to do but
 * what time brings.
 */
import { EngineError } from '../base/errors.ts'
import { type Caller, CallWaits } from './call-waits.ts'
import type { VirtualApplication } from './virtual-application.ts'
import { type FedRecord, VirtualBroker } from './virtual-broker.ts'
import { VirtualLoop } from './virtual-loop.ts'

export interface VirtualWorldOptions {
  readonly applications: readonly VirtualApplication[]
  readonly startAt: number
  readonly partitions: (topic: string) => number
  readonly commitsEach: boolean
  /** How long a call with a timeout may really take. */
  readonly patienceMs: number
}

/** So long after something has happened every timer is kept to; later the engine's housekeeping is passed over. */
const attentiveMs = 5000
/** So often those who write to a topic are looked at for what waits for them, and so often a commit is tried for it. */
const mostRounds = 8
const mostSkips = 100_000
/** So often at most the clock goes on for looks that find nothing to let in: some of its timers are others'. */
const mostLooks = 8
/** Of applications that still write to one another after so many commits, with nothing fed, the end is not waited for. */
const mostCommits = 1000

export class VirtualWorld {
  readonly loop: VirtualLoop
  readonly broker: VirtualBroker
  readonly #waits: CallWaits
  readonly #o: VirtualWorldOptions
  readonly #apps: readonly VirtualApplication[]
  /** Failures that a call was rejected with. */
  readonly #told = new WeakSet<EngineError>()

  constructor(options: VirtualWorldOptions) {
    this.#o = options
    const apps = options.applications
    this.#apps = apps
    this.loop = new VirtualLoop(options.startAt)
    this.#waits = new CallWaits(options.patienceMs)
    this.broker = new VirtualBroker({
      loop: this.loop,
      partitions: options.partitions,
      isInternal: (topic) => apps.some((app) => app.isInternal(topic)),
      isShared: apps.length > 1,
    })
    for (const app of apps) for (const topic of app.topics) this.broker.create(topic)
  }

  /** Has records processed that lie in their topics all at the same moment and, unless commits have their own pace, committed. */
  async feed(records: ReadonlyMap<string, readonly FedRecord[]>): Promise<void> {
    const isNew = [...records.keys()].map((topic) => this.broker.create(topic)).includes(true)
    if (isNew && this.#killThoseWhoLack()) {
      await this.#start()
      await this.#settled()
    }
    this.broker.append(records)
    await this.#start()
    await this.#settled()
    this.#tellFailure()
  }

  async commit(): Promise<void> {
    await this.#start()
    await this.#commit()
    this.broker.written.collect()
    this.#tellFailure()
  }

  /** Moves both clocks, from one timer to the next. */
  async advance(durationMs: number): Promise<void> {
    await this.#start()
    const { loop } = this
    let end = loop.time + durationMs
    let attentive = loop.time + attentiveMs
    while (loop.time < end) {
      const isAttentive = loop.time < attentive
      const timer = Math.min(...this.#going().map((app) => app.nextWallClock()))
      const wallClock = loop.time + Math.max(0, timer - loop.now())
      const next = Math.max(loop.time, Math.min(end, loop.nextTimer(!isAttentive), wallClock))
      const before = loop.done
      loop.moveTo(next)
      for (const app of this.#going()) app.tick()
      // What passes on the monotonic clock alone is not of what the wall clock is moved by.
      const from = loop.time
      await this.#steady()
      end += loop.time - from
      if (loop.done > before) attentive = loop.time + attentiveMs
    }
    await this.#settled()
    this.#tellFailure()
  }

  /** As processes that are killed and started again, on another disk: stores come from their changelogs. */
  async restart(apps: readonly VirtualApplication[] = this.#apps): Promise<void> {
    for (const app of apps) app.kill()
    await this.#start()
    await this.#settled()
    this.#tellFailure()
  }

  close(): void {
    for (const app of this.#apps) app.close()
  }

  /** Those that have not failed. */
  #going(): VirtualApplication[] {
    return this.#apps.filter((app) => app.failure === undefined)
  }

  #callers(): Caller[] {
    return this.#going().flatMap((app) => app.caller ?? [])
  }

  async #start(): Promise<void> {
    if (this.#going().length === 0) this.#tellFailure()
    for (const app of this.#going()) app.start(this.loop, this.broker, this.#waits)
    await this.#steady()
  }

  /** A topic that has come meanwhile is found when an engine looks for topics again: here, at its next start. */
  #killThoseWhoLack(): boolean {
    const topics = this.broker.topics()
    const lacking = this.#apps.filter((app) => app.isStarted && app.lacksOneOf(topics))
    for (const app of lacking) app.kill(this.broker)
    return lacking.length > 0
  }

  async #settled(): Promise<void> {
    await this.#steady()
    await this.#find()
    let before = -1
    let commits = 0
    for (let held = 0; this.#o.commitsEach && (this.#dispatched() !== before || held > 0); ) {
      held = this.#dispatched() === before ? held - 1 : mostRounds
      before = this.#dispatched()
      // What goes from task to task, or to another application, through a topic comes with a commit, as new input.
      await this.#commit()
      await this.#comeThrough(before)
      if (!this.#awaitsWriters()) held = 0
      if (this.#apps.length === 1) continue
      await this.#find()
      if (++commits > mostCommits) throw endless(this.#apps)
    }
    // What their time has brought about since.
    if (this.#o.commitsEach && this.#going().some((app) => app.tellsTimeInCircles)) await this.#commit()
    this.broker.written.collect()
  }

  /** What one application names when it writes may match a pattern of another. */
  async #find(): Promise<void> {
    if (this.#apps.length > 1 && this.#killThoseWhoLack()) await this.#start()
  }

  /** What comes through a topic goes on once those who write to it have told how far they have come, now and then. */
  async #comeThrough(before: number): Promise<void> {
    const tells = this.#going().some((app) => app.tellsTimeInCircles)
    for (let left = mostRounds; left > 0 && (tells || this.#awaitsWriters()) && this.#dispatched() === before; left--) {
      this.loop.skip()
      await this.#steady()
    }
  }

  #dispatched(): number {
    return this.#going().reduce((sum, app) => sum + app.dispatched, 0)
  }

  #awaitsWriters(): boolean {
    return this.#going().some((app) => app.awaitsWriters)
  }

  /** All at once: what one reads of another by it is none of what it commits. */
  async #commit(): Promise<void> {
    const open = new Set(this.#going())
    for (const app of open) void app.commit().then(() => open.delete(app))
    await this.#until((app) => app.isRunning && !open.has(app))
  }

  /**
   * All is done that can be, and the applications run. How much is let in follows from how fast lanes have been, and nobody
   * tells when they have done what they hand to one another: engines look again by the clock.
   */
  async #steady(): Promise<void> {
    await this.#until((app) => app.isRunning)
    for (let left = mostLooks; left > 0 && this.#going().some((app) => app.awaitsLanes); left--) {
      const before = this.#dispatched()
      if (!this.loop.skip()) return
      await this.#until((app) => app.isRunning)
      if (this.#dispatched() > before) left = mostLooks
    }
  }

  /** What does not come about otherwise is given time, on the monotonic clock: the pause before a restart. */
  async #until(holds: (app: VirtualApplication) => boolean): Promise<void> {
    const { loop } = this
    for (let skips = 0; ; skips++) {
      await loop.settle(
        () => this.#going().some((app) => app.waitsForApplication),
        (woken) => this.#waits.wait(woken, this.#callers()),
      )
      const going = this.#going()
      if (going.length === 0) this.#tellFailure()
      if (going.every(holds)) return
      if (skips > mostSkips || !loop.skip())
        throw new EngineError('INVARIANT_BROKEN', 'the application stands still; this is a mistake of the test driver')
    }
  }

  /** The others have done what there was to do. Whoever calls hears of a failure, and once more each time that it stands. */
  #tellFailure(): void {
    const failed = this.#apps.filter((app) => app.failure !== undefined)
    const app = failed.find(({ failure }) => !this.#told.has(failure as EngineError)) ?? failed[0]
    const failure = app?.failure
    if (app === undefined || failure === undefined) return
    const isNew = !this.#told.has(failure)
    this.#told.add(failure)
    const single = this.#apps.length === 1
    const { applicationId } = app
    const named = single ? 'The application' : `The application ${applicationId}`
    if (isNew && single) throw failure
    if (isNew)
      throw new EngineError(failure.code, `${named} has failed: ${failure.message}`, {
        ...failure.details,
        cause: failure,
      })
    throw new EngineError(
      'USAGE',
      `${named} has failed and processes nothing any more (${failure.message}); ` +
        `${single ? '' : `application('${applicationId}').`}restart() starts it again from its last commit.`,
      { cause: failure },
    )
  }
}

function endless(apps: readonly VirtualApplication[]): EngineError {
  const names = apps.map(({ applicationId }) => applicationId).join(', ')
  return new EngineError(
    'USAGE',
    `The applications ${names} write records to one another without end; a cycle has to drop or keep what it has seen.`,
  )
}
