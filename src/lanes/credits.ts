/** What a lane has worked off and not yet told the engine: told once a run, however many buffers it finished with. */
export class Credits {
  #bytes = 0
  #records = 0

  add(bytes: number, records: number): void {
    this.#bytes += bytes
    this.#records += records
  }

  /** Undefined when there is nothing to give back. */
  take(): { readonly bytes: number; readonly records: number } | undefined {
    if (this.#records === 0) return undefined
    const taken = { bytes: this.#bytes, records: this.#records }
    this.reset()
    return taken
  }

  reset(): void {
    this.#bytes = 0
    this.#records = 0
  }
}
