/** Runs the command line from source, as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

export interface CommandResult {
  /** Null where a signal ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
  /** A file that takes the standard output instead. */
  readonly stdoutTo?: string
  readonly timeoutMs?: number
  /** Largest file that the process may write, KiB: a disk that is full for large files alone. Needs a POSIX shell. */
  readonly largestFileKib?: number
}

export interface RunningCommand {
  readonly child: ChildProcess
  readonly result: Promise<CommandResult>
  /** What was written so far. */
  stdout(): string
  stderr(): string
}

const main = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts')

export function startMillrace(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  // A test runner's own variables must not reach the child: it would report to it.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env
  const file = options.stdoutTo === undefined ? undefined : openSync(options.stdoutTo, 'w')
  const words = [process.execPath, main, ...args]
  const limit = options.largestFileKib
  // The shell's `ulimit` counts in KiB where it is bash under its own name.
  const limited = limit === undefined ? words : ['bash', '-c', `ulimit -f ${limit}; exec "$@"`, 'bash', ...words]
  const child = spawn(limited[0] as string, limited.slice(1), {
    cwd: options.cwd,
    env: { ...inherited, ...options.env },
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', file ?? 'pipe', 'pipe'],
  })
  if (file !== undefined) closeSync(file)
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  child.stdin?.end(options.stdin)
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>()
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs ?? 120_000)
  child.on('error', reject)
  child.on('close', (code, signal) => {
    clearTimeout(timer)
    resolve({ code, signal, stdout, stderr })
  })
  return { child, result: promise, stdout: () => stdout, stderr: () => stderr }
}

export async function millrace(args: readonly string[], options?: CommandOptions): Promise<CommandResult> {
  return await startMillrace(args, options).result
}

/** Waits until something holds; fails with what was waited for. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 60_000,
): Promise<void> {
  const until = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > until) throw new Error(`Waited ${withinMs} ms in vain: ${what}`)
    await new Promise((done) => setTimeout(done, 25))
  }
}
