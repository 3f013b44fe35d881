/**
 * What people ask of a running engine, at any moment: commits, pauses until nothing is under way, waits until nothing is left,
 * stops. Each answer is a promise about what is committed, and is held against what the application has seen.
 */
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { SimulatedProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { Input } from './workload.ts'

export interface AsksHost {
  readonly scheduler: Scheduler
  readonly inputs: readonly Input[]
  /** The newest process. */
  process(): SimulatedProcess | undefined
  /** Where the input is committed, by partition. */
  committed(): Promise<ReadonlyMap<number, number>>
  startAgain(): void
  violate(what: string): void
}

type Positions = ReadonlyMap<number, number>

export class Asks {
  readonly #host: AsksHost
  /** Behind the newest record of each partition that the application has seen in this run of the engine. */
  #seen = new Map<number, number>()
  /** Another one with each process, and with each restart in place. */
  #run = 0
  #runs = false
  #of: SimulatedProcess | undefined
  readonly #unanswered = new Set<{ readonly what: string; readonly process: SimulatedProcess }>()
  #paused: { readonly id: number; readonly process: SimulatedProcess } | undefined
  #pauses = 0
  #stopping: SimulatedProcess | undefined
  /** An older process has the identity of the newest: what is committed from now on is the older one's. */
  #isOvertaken = false
  #isAsked = false

  constructor(host: AsksHost) {
    this.#host = host
  }

  /** A process that is about to end is no end of the run. */
  get isStopping(): boolean {
    return this.#stopping !== undefined
  }

  /** Pauses are among what is asked. */
  get isAsked(): boolean {
    return this.#isAsked
  }

  plan(asks: number, untilMs: number): void {
    const { scheduler } = this.#host
    const { random } = scheduler
    this.#isAsked = true
    for (let i = 0; i < asks; i++) {
      const ask = random.pick([this.#commit, this.#commit, this.#pause, this.#pause, this.#idle, this.#stop])
      scheduler.at(random.next() * untilMs, 0, () => {
        const process = this.#host.process()
        if (process && !this.#stopping) ask.call(this, process)
      })
    }
  }

  /** The application was given this record by the newest process. */
  saw(value: number): void {
    if (!this.#runs) return
    const { inputs } = this.#host
    const { partition } = inputs[value] as Input
    let end = 0
    for (let at = 0; at <= value; at++) if (inputs[at]?.partition === partition) end++
    this.#seen.set(partition, Math.max(end, this.#seen.get(partition) ?? 0))
  }

  /** A new process, or a new run of the same: what was seen and not committed is void. */
  begun(): void {
    this.#run++
    this.#seen = new Map()
    const process = this.#host.process()
    if (this.#of !== process) {
      this.#runs = false
      this.#isOvertaken = false
    }
    this.#of = process
    if (this.#paused?.process !== process) this.#paused = undefined
    if (this.#stopping !== process) this.#stopping = undefined
    for (const ask of this.#unanswered) if (ask.process !== process) this.#unanswered.delete(ask)
  }

  /** A process that was thought dead came to its start only now, and the newest one does not know yet that it is fenced. */
  overtaken(): void {
    this.#isOvertaken = true
  }

  told(fact: EngineFact): void {
    // Lanes may be at work on a run that is over, until the next one begins.
    if (fact.type === 'restarting' || fact.type === 'failed' || fact.type === 'running') this.begun()
    if (fact.type === 'restarting' || fact.type === 'running') this.#runs = fact.type === 'running'
    if (fact.type === 'drained' && fact.id === this.#paused?.id) void this.#drained(fact.id)
    if (fact.type === 'stopped' && this.#stopping) void this.#stopped()
  }

  get areAnswered(): boolean {
    return this.#unanswered.size === 0
  }

  /** All is done: nobody waits for an answer any more. */
  end(): void {
    for (const { what, process } of this.#unanswered)
      if (process === this.#host.process()) this.#host.violate(`${what} was never answered`)
  }

  #commit(process: SimulatedProcess): void {
    const [seen, run] = [new Map(this.#seen), this.#run]
    void this.#answered('a commit that was asked for', process, process.engine.commit(), async () => {
      // A restart in place makes the open epoch void.
      if (run === this.#run) await this.#areCommitted('a commit was asked for and is done', seen)
    })
  }

  /** Nothing may be committed behind what the engine calls nothing under way. */
  #pause(process: SimulatedProcess): void {
    if (this.#paused) return
    this.#paused = { id: ++this.#pauses, process }
    process.engine.pause(this.#pauses)
  }

  async #drained(id: number): Promise<void> {
    const { scheduler } = this.#host
    const run = this.#run
    const committed = await this.#areCommitted('it is paused, and nothing is under way', new Map(this.#seen))
    scheduler.at(scheduler.random.next() * 200, 0, async () => {
      if (this.#paused?.id !== id) return
      const { process } = this.#paused
      const after = await this.#host.committed()
      const isSame = [...after].every(([partition, offset]) => offset === committed.get(partition))
      if (run === this.#run && !this.#isOvertaken && !isSame)
        this.#host.violate(`while it was paused commits went from ${[...committed]} to ${[...after]}`)
      this.#paused = undefined
      process.engine.unpause()
    })
  }

  #idle(process: SimulatedProcess): void {
    if (this.#paused) return
    const ends = new Map<number, number>()
    for (const { partition } of this.#host.inputs) ends.set(partition, (ends.get(partition) ?? 0) + 1)
    const andStop = this.#host.scheduler.random.chance(0.3)
    void this.#answered('a wait until nothing is left', process, process.engine.untilIdle(), async (isIdle) => {
      if (!isIdle || this.#stopping) return
      await this.#areCommitted('nothing is left to do', ends)
      if (andStop && this.#host.process() === process && !this.#paused) this.#stop(process)
    })
  }

  #stop(process: SimulatedProcess): void {
    if (this.#paused) return
    this.#stopping = process
    void process.engine.stop()
  }

  async #stopped(): Promise<void> {
    const process = this.#stopping
    await this.#areCommitted('it has stopped', new Map(this.#seen))
    const { scheduler } = this.#host
    scheduler.at(scheduler.random.next() * 100, 0, () => {
      if (this.#host.process() === process) this.#host.startAgain()
    })
  }

  async #answered<A>(
    what: string,
    process: SimulatedProcess,
    answer: Promise<A>,
    then: (answer: A) => Promise<unknown>,
  ): Promise<void> {
    const ask = { what, process }
    this.#unanswered.add(ask)
    const answered = await answer
    this.#unanswered.delete(ask)
    if (this.#host.process() === process) await then(answered)
  }

  /** Nothing is said of a run that a restart in place has ended since. */
  async #areCommitted(when: string, least: Positions): Promise<Positions> {
    const run = this.#run
    const committed = await this.#host.committed()
    if (run !== this.#run) return committed
    for (const [partition, offset] of least) {
      const found = committed.get(partition) ?? 0
      if (found < offset)
        this.#host.violate(`${when}: partition ${partition} is committed up to ${found}, and was at ${offset} before`)
    }
    return committed
  }
}
