/**
 * A run of the engine: from a start, or a restart in place, to the next. What belongs to one run is given it when it is
 * made or begun, and asks it whether it is over. Whatever belongs to a run that is over is void, and nothing has failed
 * by that.
 */
export class RunOver extends Error {}

export interface Run {
  /** What messages to the lanes carry, and their answers. */
  readonly number: number
  /** Another run has begun. */
  readonly isOver: boolean
  /** Settles when the run is over. */
  readonly over: Promise<void>
  /** The work's result, unless the run ends first: then it throws `RunOver`. */
  during<T>(work: Promise<T>): Promise<T>
}

class EngineRun implements Run {
  readonly number: number
  readonly #end = Promise.withResolvers<void>()
  #isOver = false

  constructor(number: number) {
    this.number = number
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get over(): Promise<void> {
    return this.#end.promise
  }

  end(): void {
    this.#isOver = true
    this.#end.resolve()
  }

  async during<T>(work: Promise<T>): Promise<T> {
    const over = this.over.then(() => {
      throw new RunOver('the run is over')
    })
    const result = await Promise.race([work, over])
    if (this.#isOver) throw new RunOver('the run is over')
    return result
  }
}

/** The runs of an engine, one after the other. For parts that outlive a run, where something begins. */
export class Runs {
  #current = new EngineRun(0)

  get current(): Run {
    return this.#current
  }

  /** Ends the run of this moment; answers with the one that begins. */
  next(): Run {
    const before = this.#current
    this.#current = new EngineRun(before.number + 1)
    before.end()
    return this.#current
  }
}
