/** What has run of a long row of runs, one line each in a file, so that the row goes on where it stopped. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { differences, type Expected, lettersWrong } from './results.ts'
import { runEngine, type Setting } from './run-engine.ts'
import type { Program } from './program.ts'

interface Line {
  /** What ran, with which settings. */
  readonly title: string
  readonly ms: number
  readonly wrong: readonly string[]
  /** Warnings and errors of the engine: restarts, standstills. */
  readonly problems: readonly string[]
}

export class Journal {
  readonly #file: string
  readonly #again: boolean
  readonly #lines = new Map<string, Line>()

  /** `again`: what went wrong is run once more. */
  constructor(file: string, again: boolean) {
    this.#file = file
    this.#again = again
    if (!existsSync(file)) return
    for (const text of readFileSync(file, 'utf8').split('\n').filter(Boolean)) {
      const line = JSON.parse(text) as Line
      this.#lines.set(line.title, line)
    }
  }

  isDone(title: string): boolean {
    const line = this.#lines.get(title)
    return line !== undefined && !(this.#again && line.wrong.length > 0)
  }

  async run(title: string, program: Program, setting: Setting, expected: Expected): Promise<void> {
    const start = performance.now()
    const { results, letters, problems } = await runEngine(program, setting)
    const ms = Math.round(performance.now() - start)
    const wrong = [...differences(program, expected.results, results), ...lettersWrong(program, expected, letters)]
    const line: Line = { title, ms, wrong, problems }
    this.#lines.set(title, line)
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`)
    const what = line.wrong.length > 0 ? 'WRONG' : problems.length > 0 ? 'right, but' : 'ok'
    process.stdout.write(`${[what, title, ...line.wrong, ...problems].join(' | ')}\n`)
  }

  /** Answers whether all is right. Warnings alone, of a machine that is too busy, are counted and make nothing wrong. */
  summary(titles: readonly string[]): boolean {
    const lines = titles.flatMap((title) => this.#lines.get(title) ?? [])
    const wrong = lines.filter((line) => line.wrong.length > 0)
    const warned = lines.filter((line) => line.wrong.length === 0 && line.problems.length > 0)
    process.stdout.write(
      `${lines.length} of ${titles.length} runs: ${lines.length - wrong.length} as the model, ` +
        `${warned.length} of them with warnings; ${wrong.length} not\n`,
    )
    for (const { title } of wrong) process.stdout.write(`not as the model: ${title}\n`)
    return wrong.length === 0
  }
}
