/**
 * The run of the engine that is under way: from a start, or a restart in place, to the next. Whatever belongs to a run
 * that is over is void, and nothing has failed by that.
 */
export class RunOver extends Error {}

export class RunScope {
  #number = 0
  #over = Promise.withResolvers<void>()

  get number(): number {
    return this.#number
  }

  /** Settles when the run of this moment is over. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  /** Ends the run of this moment; answers with the number of the one that begins. */
  next(): number {
    this.#number++
    this.#over.resolve()
    this.#over = Promise.withResolvers<void>()
    return this.#number
  }

  /** The work's result, unless the run ends first: then it throws `RunOver`. */
  async during<T>(work: Promise<T>): Promise<T> {
    const run = this.#number
    const over = this.#over.promise.then(() => {
      throw new RunOver('the run is over')
    })
    const result = await Promise.race([work, over])
    if (run !== this.#number) throw new RunOver('the run is over')
    return result
  }
}
