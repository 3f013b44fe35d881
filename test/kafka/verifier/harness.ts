/** Runs the verifier's application as a process of its own, and the Java side of the verifier. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePorts } from '../../../scripts/free-ports.ts'
import type { LocalKafka } from '../../../scripts/kafka/local-kafka.ts'

const run = promisify(execFile)
const repository = join(import.meta.dirname, '..', '..', '..')

export interface Verdict {
  readonly ok: boolean
  readonly inputs: number
  readonly outputs: number
  /** Longest time between two results of one partition. */
  readonly maxGapMs: number
  /** When that began, and in which partition of the input it was. */
  readonly gapFromMs: number
  readonly gapPartition: number
  readonly errorCount: number
  readonly errors: readonly string[]
}

/** Where the Java side goes, and the jars that it is made with. */
export type VerifiedBroker = Pick<LocalKafka, 'bootstrap' | 'jars'>

/** The Java side: creates the topics, writes the input, judges the output. Goes to the broker directly. */
export class VerifierTool {
  readonly #broker: VerifiedBroker
  readonly #classes: string
  readonly #running = new Set<ChildProcess>()

  private constructor(broker: VerifiedBroker, classes: string) {
    this.#broker = broker
    this.#classes = classes
  }

  static async compile(broker: VerifiedBroker): Promise<VerifierTool> {
    const classes = mkdtempSync(join(tmpdir(), 'millrace-verifier-'))
    const source = join(import.meta.dirname, 'Verifier.java')
    await run('javac', ['-nowarn', '-d', classes, '-cp', `${broker.jars}/*`, source])
    return new VerifierTool(broker, classes)
  }

  dispose(): void {
    for (const child of this.#running) child.kill('SIGKILL')
    rmSync(this.#classes, { recursive: true, force: true })
  }

  async create(prefix: string, partitions = 4): Promise<void> {
    await this.#run('create', { prefix, partitions })
  }

  /**
   * Answers how many records were written. `base` is the event time of the first; now, where none is given. With
   * `until`, the path of a file, it ends as soon as that file is there.
   */
  async produce(
    prefix: string,
    options: { records: number; keys: number; rate: number; seed: number; base?: number; until?: string },
  ): Promise<number> {
    return JSON.parse(await this.#run('produce', { prefix, ...options })).produced
  }

  /** With `application` the changelog of its lists is judged as well. */
  async verify(prefix: string, timeoutMs: number, application: string | null = prefix): Promise<Verdict> {
    const options = { prefix, 'timeout-ms': timeoutMs, ...(application !== null && { application }) }
    const text = await this.#run('verify', options).catch(
      (error: { stdout?: string; stderr?: string }) =>
        error.stdout || JSON.stringify({ ok: false, errors: [error.stderr] }),
    )
    return JSON.parse(text) as Verdict
  }

  async #run(command: string, options: Readonly<Record<string, string | number>>): Promise<string> {
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
    const classPath = `${this.#classes}:${this.#broker.jars}/*`
    const jvm = [
      '-Xmx512m',
      '-XX:+UseSerialGC',
      '-XX:TieredStopAtLevel=1',
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=off',
    ]
    const bootstrap = ['--bootstrap', this.#broker.bootstrap]
    const done = run('java', [...jvm, '-cp', classPath, 'Verifier', command, ...bootstrap, ...args], { maxBuffer: 1e8 })
    this.#running.add(done.child)
    try {
      return (await done).stdout
    } finally {
      this.#running.delete(done.child)
    }
  }
}

export interface EngineOptions {
  readonly prefix: string
  readonly bootstrap: string
  readonly stateFolder: string
  /** File in this folder; the verifier's application where none is named. */
  readonly application?: string
  readonly settings?: Readonly<Record<string, string>>
  /** Where others know it to be; another one after every start where none is given. */
  readonly port?: number
  /** Tells the others of its group at which address it can be asked. */
  readonly announces?: boolean
}

/** One process of the application, started again after each end that the test brought about. */
export class EngineProcess {
  readonly #options: EngineOptions
  readonly #logFile: string
  #port = 0
  #child: ChildProcess | undefined
  /** Ends that nobody asked for. */
  readonly crashes: string[] = []

  constructor(options: EngineOptions) {
    this.#options = options
    this.#logFile = join(tmpdir(), `${options.prefix}-${process.pid}-${Math.random().toString(36).slice(2)}.log`)
  }

  get log(): string {
    return readFileSync(this.#logFile, 'utf8')
  }

  /** Where its HTTP interface is. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** With `failpoint` it kills itself there: `S4:3` is the third time that a commit takes step S4. */
  async start(failpoint?: string): Promise<void> {
    const { prefix, bootstrap, stateFolder, settings, application = 'app.ts', announces = false } = this.#options
    this.#port = this.#options.port ?? ((await freePorts(1))[0] as number)
    const all = {
      ...(announces && { 'runtime.http.advertised-address': this.url }),
      'broker.bootstrap-servers': bootstrap,
      'engine.state.dir': stateFolder,
      'engine.lanes.count': '2',
      'runtime.http.host': '127.0.0.1',
      'runtime.http.port': String(this.#port),
      ...settings,
    }
    const args = [
      join(repository, 'src', 'cli', 'main.ts'),
      'run',
      join(import.meta.dirname, application),
      ...Object.entries(all).flatMap(([key, value]) => ['--set', `${key}=${value}`]),
    ]
    const child = spawn(process.execPath, args, {
      cwd: repository,
      env: { ...process.env, VERIFIER_PREFIX: prefix, ...(failpoint && { MILLRACE_FAILPOINT: failpoint }) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const log = createWriteStream(this.#logFile, { flags: 'a' })
    child.stdout?.pipe(log, { end: false })
    child.stderr?.pipe(log, { end: false })
    child.once('exit', (code, signal) => {
      if (this.#child === child) this.crashes.push(`exit ${code ?? signal}`)
      log.end()
    })
    const endWithUs = (): boolean => child.kill('SIGKILL')
    process.once('exit', endWithUs)
    child.once('exit', () => process.removeListener('exit', endWithUs))
    this.#child = child
  }

  /** The lifecycle state that the HTTP interface shows, or undefined while there is none. */
  async health(): Promise<string | undefined> {
    try {
      const response = await fetch(`${this.url}/health/ready`, {
        signal: AbortSignal.timeout(10_000),
      })
      return response.ok ? 'ready' : 'not ready'
    } catch {
      return undefined
    }
  }

  /** What the HTTP interface answers, or undefined while there is none. */
  async ask(path: string): Promise<string | undefined> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, { signal: AbortSignal.timeout(10_000) })
      return await response.text()
    } catch {
      return undefined
    }
  }

  async untilReady(timeoutMs = 120_000): Promise<number> {
    const startedAtMs = performance.now()
    while (performance.now() - startedAtMs < timeoutMs) {
      if ((await this.health()) === 'ready') return performance.now() - startedAtMs
      if (this.crashes.length) break
      await sleep(25)
    }
    assert.fail(`the engine did not become ready (${this.crashes.join(', ')}); its log:\n${this.log.slice(-4000)}`)
  }

  /** Ends it as a lost machine does; at once, so that it can be called from within an event. */
  kill(): void {
    const child = this.#child
    this.#child = undefined
    child?.kill('SIGKILL')
  }

  suspend(): void {
    this.#child?.kill('SIGSTOP')
  }

  wake(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Waits for the end at its failpoint. */
  async untilKilled(timeoutMs = 180_000): Promise<void> {
    const child = this.#child
    await this.untilExit(timeoutMs)
    assert.equal(child?.signalCode, 'SIGKILL', `the engine ended by itself; its log:\n${this.log.slice(-4000)}`)
  }

  /** Waits for an end that is expected, and answers its exit code. */
  async untilExit(timeoutMs: number): Promise<number | null> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
    const late = sleep(timeoutMs, 'late' as const, { ref: false })
    const outcome = await Promise.race([ended, late])
    if (outcome !== 'late') return outcome
    child.kill('SIGKILL')
    return assert.fail(`the engine did not end within ${timeoutMs} ms; its log:\n${this.log.slice(-4000)}`)
  }

  /** Asks it to end, and answers its exit code. */
  async stop(): Promise<number | null> {
    this.#child?.kill('SIGTERM')
    return this.untilExit(120_000)
  }

  dispose(): void {
    this.kill()
    rmSync(this.#logFile, { force: true })
  }
}
