/** One line on a terminal that is written over again and again; silent where standard error is no terminal. */
export class ProgressLine {
  readonly #stream: NodeJS.WriteStream
  readonly #enabled: boolean
  #shown = ''

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream
    this.#enabled = stream.isTTY === true
  }

  get enabled(): boolean {
    return this.#enabled
  }

  show(text: string): void {
    if (!this.#enabled || text === this.#shown) return
    const columns = this.#stream.columns ?? 80
    this.#stream.write(`\r\u001b[K${text.slice(0, columns - 1)}`)
    this.#shown = text
  }

  clear(): void {
    if (this.#shown === '') return
    this.#stream.write('\r\u001b[K')
    this.#shown = ''
  }

  /** Writes a whole line above the progress line. */
  above(line: string): void {
    const shown = this.#shown
    this.clear()
    this.#stream.write(`${line}\n`)
    if (shown !== '') this.show(shown)
  }
}

/** `12,345`, the same in every locale. `Intl` has to load its data first, which every start would wait for. */
export function grouped(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}
