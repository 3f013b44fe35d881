/** `millrace run`: an application on a broker, fed and printed if asked for, until it is told to end or is done. */
import { once } from 'node:events'
import { resolve } from 'node:path'
import { loadConfig } from '../config/load.ts'
import type { LogLine, Runtime, RuntimeOptions } from '../runtime/contract.ts'
import { logFilterOf } from '../runtime/log.ts'
import type { CommittedReader } from './feed/committed-reader.ts'
import { showConsole } from './dev.ts'
import { exitCodeOf, exitCodes, sentenceOf } from './exit-codes.ts'
import { FailureWatch, failureError } from './failure-watch.ts'
import { Feeder } from './feed/feed.ts'
import { type Feed, parseFeeds } from './feed/feed-reader.ts'
import { holdInput } from './feed/hold.ts'
import { commandLog } from './log.ts'
import { printerOf } from './feed/print.ts'
import { outputFault } from './feed/output.ts'
import { refuseUnreadTopic, unwrittenTopic } from './feed/known-topics.ts'
import { ProgressLine } from './progress.ts'
import { RestoreProgressLine } from './restore-progress.ts'
import { onStopSignal } from './signals.ts'

export interface RunArguments {
  readonly config?: string
  readonly set: readonly string[]
  readonly feed: readonly string[]
  readonly print: readonly string[]
  readonly untilIdle: boolean
  readonly feedRate?: number
}

/** How long a stop waits for what is under way to be committed, so that `--print` can show it. */
const drainForPrintMs = 20_000

/** Runs to the end and gives the exit code; errors of usage and configuration are thrown before anything starts. */
export async function runApplication(application: string, args: RunArguments): Promise<number> {
  const feeds = parseFeeds(args.feed)
  const progress = new ProgressLine()
  const config = loadConfig({
    environment: process.env,
    set: args.set,
    ...(args.config !== undefined && { file: args.config }),
  })
  const log = commandLog(progress, logFilterOf(config))
  const { startRuntime } = await import('../runtime/index.ts')
  const options: RuntimeOptions = {
    application: resolve(application),
    ...(args.config !== undefined && { configFile: args.config }),
    set: args.set,
    environment: process.env,
    log,
  }
  const stopAsked = new AbortController()
  const signals = onStopSignal(() => stopAsked.abort())
  // A reader that has enough, as `head` does, ends the run like a signal.
  process.stdout.on('error', () => stopAsked.abort())
  try {
    const runtime = await startRuntime(options)
    await refuseUnknownTopics(runtime, feeds, args.print, log)
    if (runtime.url !== undefined && config.get('runtime.http.console.enabled')) {
      showConsole(runtime.url, (line) => progress.above(line))
    }
    return await new Run(runtime, args, progress, log, stopAsked.signal).toTheEnd(feeds)
  } finally {
    progress.clear()
    signals.dispose()
  }
}

/** A name that nothing in the application knows is a slip more often than a wish. */
async function refuseUnknownTopics(
  runtime: Runtime,
  feeds: readonly Feed[],
  print: readonly string[],
  log: (line: LogLine) => void,
): Promise<void> {
  const topology = runtime.view.topology()
  if (topology === null) return
  try {
    for (const { topic } of feeds) refuseUnreadTopic(topology, topic)
  } catch (error) {
    await runtime.stop()
    throw error
  }
  for (const topic of print) {
    const message = unwrittenTopic(topology, topic)
    if (message !== undefined) log({ level: 'warn', component: 'print', message })
  }
}

class Run {
  readonly #runtime: Runtime
  readonly #args: RunArguments
  readonly #progress: ProgressLine
  readonly #log: (line: LogLine) => void
  readonly #stopAsked: AbortSignal
  /** Ends the feeding: at a signal, and when the runtime has ended by itself. */
  readonly #feeding = new AbortController()
  readonly #printer: CommittedReader | undefined

  constructor(
    runtime: Runtime,
    args: RunArguments,
    progress: ProgressLine,
    log: (line: LogLine) => void,
    stopAsked: AbortSignal,
  ) {
    this.#runtime = runtime
    this.#args = args
    this.#progress = progress
    this.#log = log
    this.#stopAsked = stopAsked
    if (args.print.length > 0) {
      this.#printer = printerOf({
        broker: runtime.broker,
        topics: args.print,
        topology: () => runtime.view.topology(),
        out: process.stdout,
        ready: this.#serdesReady(),
      })
    }
  }

  /** Settles too when there is nothing to wait for any more. */
  #serdesReady(): Promise<void> {
    const stopped = this.#stopAsked.aborted ? Promise.resolve() : once(this.#stopAsked, 'abort').then(() => undefined)
    return Promise.race([this.#runtime.serdesReady, stopped, this.#runtime.ended.then(() => undefined)]).catch(
      () => undefined,
    )
  }

  async toTheEnd(feeds: readonly Feed[]): Promise<number> {
    const restoring = new RestoreProgressLine(this.#runtime.view, this.#progress)
    this.#printer?.start()
    const signalled = this.#stopAsked.aborted ? Promise.resolve() : once(this.#stopAsked, 'abort')
    const work = this.#work(feeds)
    const watch = new FailureWatch(this.#runtime, this.#args.untilIdle)
    try {
      const first = await Promise.race([
        work.then((done): 'idle' | 'fed' => (done ? 'idle' : 'fed')),
        signalled.then((): 'signal' => 'signal'),
        this.#runtime.ended.then((): 'ended' => 'ended'),
        watch.failed,
      ])
      if (first === 'fed') await Promise.race([signalled, this.#runtime.ended, watch.failed])
      this.#feeding.abort()
      return await this.#end(first === 'idle')
    } catch (error) {
      this.#feeding.abort()
      return await this.#fail(error)
    } finally {
      watch.stop()
      restoring.stop()
      // Whatever ended the run first, the other branch may still fail; nobody needs to hear of it then.
      work.catch(() => undefined)
    }
  }

  /** True when the run is done with it: everything fed, processed and committed. */
  async #work(feeds: readonly Feed[]): Promise<boolean> {
    if (feeds.length > 0) {
      const feeder = new Feeder({
        broker: this.#runtime.broker,
        topology: () => this.#runtime.view.topology(),
        rate: this.#args.feedRate,
        progress: this.#progress,
        note: (message) => this.#log({ level: 'info', component: 'feed', message }),
        warn: (message) => this.#log({ level: 'warn', component: 'feed', message }),
        untilIdle: this.#args.untilIdle,
        signal: this.#feeding.signal,
        ready: this.#serdesReady(),
      })
      const letIn = await this.#holdForFeeds(feeds)
      await feeder.run(feeds)
      await letIn?.()
    }
    if (!this.#args.untilIdle) return false
    await this.#runtime.untilIdle()
    return true
  }

  /** The way to let records in again, where nothing is processed until all feeds are in. */
  async #holdForFeeds(feeds: readonly Feed[]): Promise<(() => Promise<void>) | undefined> {
    const { untilIdle, feedRate } = this.#args
    if (!untilIdle || feedRate !== undefined || feeds.length < 2) return undefined
    return await holdInput(this.#runtime, this.#feeding.signal)
  }

  /** The clean way out: by being idle, by a signal, or because the runtime ended by itself. */
  async #end(idle: boolean): Promise<number> {
    if (this.#printer && outputFault() === undefined) {
      // What was read is committed while the broker still answers, so that it is printed.
      if (!idle) await this.#runtime.drain(drainForPrintMs)
      await this.#printer.finish()
    }
    const code = await this.#runtime.stop()
    const { failure } = this.#runtime.view.state()
    if (!failure || code === exitCodes.clean) return code
    const error = failureError(failure)
    this.#say(error)
    return exitCodeOf(error) === exitCodes.crash ? code : exitCodeOf(error)
  }

  /** An error in the feed, in a topic to print, or of an engine that cannot become idle any more. */
  async #fail(error: unknown): Promise<number> {
    await this.#printer?.finish().catch((cause: unknown) => this.#note('The rest could not be printed', cause))
    const stopped = await this.#runtime.stop()
    this.#say(error)
    const own = exitCodeOf(error)
    const failure = this.#runtime.view.state().failure
    if (own !== exitCodes.crash) return own
    const its = failure ? exitCodeOf(failureError(failure)) : exitCodes.crash
    if (its !== exitCodes.crash) return its
    return stopped === exitCodes.clean ? own : stopped
  }

  #note(what: string, cause: unknown): void {
    this.#log({ level: 'warn', component: 'cli', message: `${what}: ${sentenceOf(cause)}` })
  }

  #say(error: unknown): void {
    this.#progress.above(sentenceOf(error))
  }
}
