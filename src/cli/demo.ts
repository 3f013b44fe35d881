/** `millrace demo`: the flights example, with real data at a visible pace, on the embedded broker. */
import { extname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../base/errors.ts'
import type { Runtime, RuntimeOptions } from '../runtime/contract.ts'
import { logFilter } from '../runtime/log.ts'
import { CommittedReader } from './feed/committed-reader.ts'
import { exitCodeOf, sentenceOf } from './exit-codes.ts'
import { Feeder } from './feed/feed.ts'
import { FailureWatch } from './failure-watch.ts'
import type { Feed } from './feed/feed-reader.ts'
import { commandLog } from './log.ts'
import { keyBytesOf, valueBytesOf } from './feed/print.ts'
import { grouped, ProgressLine } from './progress.ts'
import { onStopSignal } from './signals.ts'
import { PrintDecoder } from './feed/topic-codec.ts'

export interface DemoArguments {
  readonly rate: number
  readonly set: readonly string[]
  /** Keeps running at the end. Always so on a terminal. */
  readonly stay: boolean
}

/** What the example's data module gives; it lies outside the sources, as an application does. */
interface DemoData {
  flights(): readonly unknown[]
  airports(): readonly unknown[]
}

interface LateHour {
  readonly airport: string
  readonly flights: number
  readonly minutes: number
}

interface AirportHour extends LateHour {
  readonly startMs: number
}

const outputTopic = 'late-by-hour'
const linesPerPiece = 1000
const tickMs = 1000
const worstShown = 10

function exampleModule(name: string): URL {
  return new URL(`../../examples/flights/${name}${extname(import.meta.url)}`, import.meta.url)
}

export async function runDemo(args: DemoArguments): Promise<number> {
  const progress = new ProgressLine()
  const stopAsked = new AbortController()
  const signals = onStopSignal(() => stopAsked.abort())
  try {
    const data = (await import(exampleModule('data').href)) as DemoData
    const runtime = await startOnFreePort(args, {
      application: exampleModule('app'),
      config: {
        'broker.bootstrap-servers': 'embedded:',
        'engine.state.store': 'memory',
        'runtime.http.host': '127.0.0.1',
      },
      set: args.set,
      environment: {},
      // In the midst of the demo's own lines the engine's log keeps to what matters.
      log: commandLog(progress, logFilter('warn')),
    })
    return await new Demo(runtime, data, args, progress, stopAsked.signal).toTheEnd()
  } finally {
    signals.dispose()
  }
}

/** The demo is no reason to stop whatever has the usual port: it takes a free one. */
async function startOnFreePort(args: DemoArguments, options: RuntimeOptions): Promise<Runtime> {
  const { startRuntime } = await import('../runtime/index.ts')
  try {
    return await startRuntime(options)
  } catch (error) {
    const chosen = args.set.some((setting) => setting.startsWith('runtime.http.port='))
    if (chosen || !EngineError.is(error) || error.code !== 'PORT_TAKEN') throw error
    print('Port 8080 is taken; the demo takes a free one.')
    return await startRuntime({ ...options, set: [...args.set, 'runtime.http.port=0'] })
  }
}

class Demo {
  readonly #runtime: Runtime
  readonly #data: DemoData
  readonly #args: DemoArguments
  readonly #progress: ProgressLine
  readonly #signal: AbortSignal
  readonly #hours: AirportHour[] = []
  readonly #reader: CommittedReader

  constructor(runtime: Runtime, data: DemoData, args: DemoArguments, progress: ProgressLine, signal: AbortSignal) {
    this.#runtime = runtime
    this.#data = data
    this.#args = args
    this.#progress = progress
    this.#signal = signal
    this.#reader = new CommittedReader({
      broker: runtime.broker,
      topics: [outputTopic],
      onRecords: (_topic, _partition, cursor) => {
        const decoder = new PrintDecoder(runtime.view.topology(), outputTopic)
        while (cursor.next()) {
          const key = decoder.key(keyBytesOf(cursor)) as { readonly start: number }
          const hour = decoder.value(valueBytesOf(cursor)) as LateHour
          this.#hours.push({ ...hour, startMs: key.start })
        }
      },
    })
  }

  async toTheEnd(): Promise<number> {
    const watch = new FailureWatch(this.#runtime, true)
    const { failed } = watch
    try {
      await Promise.race([this.#replay(), failed])
      if (this.#signal.aborted) return await this.#runtime.stop()
      printWorst(this.#hours)
      await this.#stayIfAsked(failed)
      return await this.#runtime.stop()
    } catch (error) {
      this.#progress.above(sentenceOf(error))
      const code = await this.#runtime.stop()
      return code === 0 ? exitCodeOf(error) : code
    } finally {
      watch.stop()
    }
  }

  async #replay(): Promise<void> {
    const { view, url } = this.#runtime
    const flights = this.#data.flights()
    const airports = this.#data.airports()
    const pace = grouped(this.#args.rate)
    print(`Late flights per airport and hour: ${grouped(flights.length)} real flights of early 2001, ${pace} a second.`)
    print(`One process, the embedded broker, ${view.lanes} lanes, exactly-once.`)
    if (url !== undefined) {
      print(`Console: ${url}/console/`)
      print(`HTTP interface: ${url} (try ${url}/info, ${url}/topology, ${url}/metrics)`)
    }
    print('')
    this.#reader.start()
    const ticker = setInterval(() => this.#tick(), tickMs)
    try {
      await this.#feed(undefined, feedOf('airports', airports))
      await this.#feed(this.#args.rate, feedOf('flights', flights))
      if (this.#signal.aborted) return
      await this.#runtime.untilIdle()
      await this.#reader.finish()
    } finally {
      clearInterval(ticker)
      this.#progress.clear()
    }
  }

  async #feed(rate: number | undefined, feed: Feed): Promise<void> {
    const { broker, view } = this.#runtime
    const feeder = new Feeder({
      broker,
      topology: () => view.topology(),
      rate,
      progress: this.#progress,
      note: print,
      warn: print,
      signal: this.#signal,
    })
    await feeder.run([feed])
  }

  #tick(): void {
    const now = this.#runtime.view.watermarks()?.globalMs
    const latest = this.#hours.at(-1)
    if (now === null || now === undefined || !latest) return
    const late = this.#hours.reduce((sum, hour) => sum + hour.flights, 0)
    this.#progress.clear()
    print(`${instant(now)}  ${grouped(late)} flights late so far; last: ${latest.airport}, ${latest.minutes} min`)
  }

  async #stayIfAsked(failed: Promise<never>): Promise<void> {
    if (!this.#args.stay && !process.stdout.isTTY) return
    const { url } = this.#runtime
    print(`\nAll is processed; the engine keeps running${url === undefined ? '' : ` (${url})`}. Ctrl-C ends it.`)
    const signalled = sleep(2 ** 31 - 1, undefined, { signal: this.#signal }).catch(() => 'signal')
    await Promise.race([signalled, failed])
  }
}

function feedOf(topic: string, records: readonly unknown[]): Feed {
  async function* pieces(): AsyncGenerator<string[]> {
    for (let i = 0; i < records.length; i += linesPerPiece) {
      yield records.slice(i, i + linesPerPiece).map((record) => JSON.stringify(record))
    }
  }
  return { topic, source: topic, mark: undefined, open: pieces }
}

function printWorst(hours: readonly AirportHour[]): void {
  const worst = hours.toSorted((a, b) => b.flights - a.flights || b.minutes - a.minutes).slice(0, worstShown)
  print(`\nThe ${worst.length} worst of ${grouped(hours.length)} airport-hours:\n`)
  print('  late  minutes  hour              airport')
  for (const { flights, minutes, startMs, airport } of worst) {
    print(`${String(flights).padStart(6)}${String(minutes).padStart(9)}  ${instant(startMs)}  ${airport}`)
  }
}

/** `2001-01-14 21:55` */
function instant(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
