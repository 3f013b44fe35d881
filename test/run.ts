/**
 * Runs the test files group by group: `node test/run.ts [group | path]…`.
 * The last line is `N passed, N failed, N skipped` over all of them; the exit code is 1 on a failure or without tests.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { keepCompiled } from '../src/cli/compile-cache.ts'
import { filesOf, repositoryRoot, type TestGroup, testGroups } from './groups.ts'
import { IdleCores } from './idle-cores.ts'

// Files of tests import the same sources, in a process each and in threads of it: half of what they would cost is compiling.
keepCompiled()

/** Two cores are what the continuous integration has; tests of the engine start threads of their own. */
const concurrentFiles = 2
/** Many of them wait most of their time, for the session of a member to end for one: while the cores idle more of them run. */
const filesWhileIdle = 2 * concurrentFiles
const askAgainMs = 1000

interface Totals {
  passed: number
  failed: number
  skipped: number
}

interface FileResult extends Totals {
  readonly notes: string[]
  /** What the file wrote to standard error, shown when one of its tests failed. */
  stderr: string
}

const shownStderrChars = 4000

/** A folder of files in memory, as Linux has it. Containers often have one that is too small. */
const memory = '/dev/shm'
const leastMemoryBytes = 1 << 30

/** For the files of groups that want one in memory; undefined: where the system puts temporary files. */
const memoryFolder = ((): string | undefined => {
  try {
    const { bavail, bsize } = statfsSync(memory)
    return bavail * bsize < leastMemoryBytes ? undefined : mkdtempSync(join(memory, 'millrace-tests-'))
  } catch {
    return undefined
  }
})()

function chosenGroups(args: readonly string[]): TestGroup[] {
  if (args.length === 0) return testGroups.filter(({ onlyByName }) => !onlyByName)
  const chosen = new Map<string, TestGroup>()
  for (const arg of args) {
    const named = testGroups.find((group) => group.name === arg)
    if (named) chosen.set(named.name, named)
    else if (existsSync(join(repositoryRoot, arg))) {
      chosen.set(arg, { name: arg, about: '', folders: [arg], testTimeoutMs: 600_000, fileTimeoutMs: 1_200_000 })
    } else {
      const names = testGroups.map((group) => group.name).join(', ')
      process.stderr.write(`There is no group '${arg}'; name some of ${names}, or a path.\n`)
      process.exit(2)
    }
  }
  return [...chosen.values()]
}

function groupFiles(group: TestGroup): string[] {
  if (group.folders.some((folder) => folder.endsWith('.ts'))) return [...group.folders]
  return filesOf(group)
}

function describeFailure(data: { name: string; details: { error?: Error & { cause?: unknown } } }): string {
  const error = data.details.error
  const cause = error?.cause ?? error
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  const indented = text.split('\n').map((line) => `      ${line}`)
  return `  FAILED ${data.name}\n${indented.slice(0, 40).join('\n')}`
}

/** Said once more at the end, where it is looked for: what failed, by file. */
const failures: string[] = []

class GroupReport {
  readonly totals: Totals = { passed: 0, failed: 0, skipped: 0 }
  readonly #files = new Map<string, FileResult>()
  readonly #skips = new Map<string, number>()

  file(path: string | undefined): FileResult {
    const key = path ?? 'unknown file'
    let result = this.#files.get(key)
    if (!result) {
      result = { passed: 0, failed: 0, skipped: 0, notes: [], stderr: '' }
      this.#files.set(key, result)
    }
    return result
  }

  skip(reason: string): void {
    this.#skips.set(reason, (this.#skips.get(reason) ?? 0) + 1)
  }

  hasFile(path: string): boolean {
    return this.#files.has(path)
  }

  printFile(path: string, durationMs: number | undefined): void {
    const result = this.#files.get(path)
    if (!result) return
    this.#files.delete(path)
    this.totals.passed += result.passed
    this.totals.failed += result.failed
    this.totals.skipped += result.skipped
    const mark = result.failed > 0 ? 'FAIL' : 'ok  '
    const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : ''
    const name = relative(repositoryRoot, path)
    if (result.failed > 0) failures.push(`FAIL ${name}`, ...result.notes)
    const seconds = durationMs === undefined ? '' : ` (${(durationMs / 1000).toFixed(1)} s)`
    process.stdout.write(`${mark} ${name}: ${result.passed} passed${skipped}${seconds}\n`)
    for (const note of result.notes) process.stdout.write(`${note}\n`)
    if (result.failed > 0 && result.stderr.trim() !== '') {
      process.stdout.write(`  standard error (its end):\n${result.stderr.slice(-shownStderrChars)}\n`)
    }
  }

  printTogether(files: readonly string[], durationMs: number): void {
    process.stdout.write(`     ${files.length} files in one process (${(durationMs / 1000).toFixed(1)} s)\n`)
  }

  /** Files that died before they could report. */
  printRest(): void {
    for (const path of [...this.#files.keys()]) this.printFile(path, undefined)
    for (const [reason, count] of this.#skips) process.stdout.write(`     ${count} skipped: ${reason}\n`)
  }
}

/**
 * Files in a process of their own. The runner bounds every single test; what is left behind by one that hung (sockets,
 * timers, processes) may still keep the process alive, so the process as a whole has an end too.
 */
function runFiles(group: TestGroup, files: readonly string[], report: GroupReport): Promise<void> {
  const paths = files.map((file) => join(repositoryRoot, file))
  const first = paths[0] as string
  const { promise, resolve } = Promise.withResolvers<void>()
  const tooLong = new AbortController()
  const startedAtMs = performance.now()
  const seconds = group.fileTimeoutMs / 1000
  const fail = (path: string, why: string): void => {
    const result = report.file(path)
    result.failed++
    result.notes.push(`  FAILED ${why}`)
  }
  const deadline = setTimeout(() => {
    fail(first, `${files.join(', ')} did not end within ${seconds} s and was stopped`)
    tooLong.abort()
  }, group.fileTimeoutMs)
  const stream = run({
    files: [paths.length > 1 ? join(repositoryRoot, 'test/together.ts') : first],
    timeout: group.testTimeoutMs,
    cwd: repositoryRoot,
    signal: tooLong.signal,
    env: {
      ...process.env,
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import ${sources}`,
      TEST_STRIPPED: stripped,
      ...(paths.length > 1 && { TEST_FILES: paths.join('\n') }),
      ...(group.inMemory && memoryFolder && { TMPDIR: memoryFolder }),
    },
  })
  listen(stream, report)
  stream.on('end', () => {
    clearTimeout(deadline)
    const withoutTest = paths.filter((path) => paths.length > 1 && !report.hasFile(path))
    for (const path of withoutTest) fail(path, 'the file holds no test')
    // With what lies before and after its tests, a broker's start for one.
    const durationMs = performance.now() - startedAtMs
    for (const path of paths) report.printFile(path, paths.length > 1 ? undefined : durationMs)
    if (paths.length > 1) report.printTogether(files, durationMs)
    resolve()
  })
  stream.resume()
  return promise
}

function listen(stream: ReturnType<typeof run>, report: GroupReport): void {
  stream.on('test:pass', (data) => {
    // A suite counts where it was skipped as a whole: its tests are not told then.
    if (data.details.type === 'suite' && data.skip === undefined) return
    const result = report.file(data.file ?? data.name)
    if (data.name === data.file) {
      result.failed++
      result.notes.push('  FAILED the file holds no test')
      return
    }
    if (data.skip !== undefined || data.todo !== undefined) {
      result.skipped++
      report.skip(typeof data.skip === 'string' ? data.skip : 'without a reason')
    } else result.passed++
  })
  stream.on('test:fail', (data) => {
    // A suite fails when one of its tests does; it counts only where something beside its tests went wrong.
    const failure = (data.details.error as { failureType?: string } | undefined)?.failureType
    if (failure === 'subtestsFailed') return
    const result = report.file(data.file ?? data.name)
    result.failed++
    result.notes.push(describeFailure(data))
  })
  stream.on('test:stderr', (data) => {
    const result = report.file(data.file)
    result.stderr = (result.stderr + data.message).slice(-2 * shownStderrChars)
    if (process.env.TEST_VERBOSE) process.stderr.write(data.message)
  })
}

/** A group under way: what is said of it before its first file and after its last. */
class GroupRun {
  readonly report = new GroupReport()
  /** Those of one process each. */
  readonly processes: ReadonlyArray<readonly string[]>
  readonly #group: TestGroup
  #left: number
  #startedAtMs = 0

  constructor(group: TestGroup) {
    this.#group = group
    const together = (file: string): string => group.together?.find((folder) => file.startsWith(`${folder}/`)) ?? file
    this.processes = [...Map.groupBy(groupFiles(group), together).values()]
    this.#left = this.processes.length
  }

  async run(files: readonly string[]): Promise<void> {
    if (this.#startedAtMs === 0) this.#begin()
    await runFiles(this.#group, files, this.report)
    if (--this.#left === 0) this.#end()
  }

  #begin(): void {
    this.#startedAtMs = performance.now()
    const { name, about } = this.#group
    const count = this.processes.flat().length
    const noun = count === 1 ? 'file' : 'files'
    process.stdout.write(`\n== ${name}${about ? ` - ${about}` : ''} (${count} ${noun})\n`)
  }

  #end(): void {
    this.report.printRest()
    const { passed, failed, skipped } = this.report.totals
    const seconds = Math.round((performance.now() - this.#startedAtMs) / 1000)
    process.stdout.write(
      `-- ${this.#group.name}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${seconds} s\n`,
    )
  }
}

const runs = chosenGroups(process.argv.slice(2)).map((group) => new GroupRun(group))
const sources = pathToFileURL(join(repositoryRoot, 'test/sources.mjs'))
const stripped = mkdtempSync(join(tmpdir(), 'millrace-stripped-'))
// Nothing waits for it: a source that still has its types is loaded with them.
const stripping = spawn(
  process.execPath,
  ['--disable-warning=ExperimentalWarning', join(repositoryRoot, 'test/strip.ts'), stripped],
  { stdio: ['ignore', 'ignore', 'inherit'] },
)
// The next group begins while the last file of the one before goes on: no core waits for it.
const left = runs.flatMap((group) => group.processes.map((files) => ({ group, files })))
const underWay = new Set<Promise<void>>()
const cores = new IdleCores()
while (left.length > 0 || underWay.size > 0) {
  const hasRoom = underWay.size < concurrentFiles || (underWay.size < filesWhileIdle && cores.wereIdle())
  const next = hasRoom ? left.shift() : undefined
  if (next === undefined) await Promise.race([...underWay, sleep(askAgainMs, undefined, { ref: false })])
  else {
    const file = next.group.run(next.files).finally(() => underWay.delete(file))
    underWay.add(file)
  }
}

stripping.kill()
rmSync(stripped, { recursive: true, force: true })
if (memoryFolder) rmSync(memoryFolder, { recursive: true, force: true })

const all: Totals = { passed: 0, failed: 0, skipped: 0 }
for (const { report } of runs) {
  all.passed += report.totals.passed
  all.failed += report.totals.failed
  all.skipped += report.totals.skipped
}
const ran = all.passed + all.failed
if (ran === 0) process.stdout.write('No test ran.\n')
if (failures.length > 0) process.stdout.write(`\n== what failed\n${failures.join('\n')}\n`)
process.stdout.write(`\n${all.passed} passed, ${all.failed} failed, ${all.skipped} skipped\n`)
process.exitCode = all.failed > 0 || ran === 0 ? 1 : 0
