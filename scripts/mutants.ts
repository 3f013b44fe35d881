/**
 * Puts small mistakes into sources, one at a time, and reports which of them the tests notice:
 * `npm run mutants -- [<file or folder>[:<first line>-<last line>]…] [--draw 100] [--by 1] [--seeds 60] [--jobs 2] [--tests <file>[,<file>]…]…`. Without a name
 * the mistakes are put into the files of the protocol. `--draw` takes so many of them by chance, `--by` the same ones again. A mistake is
 * judged by the simulators, then by the type checker, then by the tests of each `--tests` in turn, until one of them notices it: those that
 * are quick are best named first. Those that survive are printed, and want a test or an explanation.
 *
 * The mistakes are those of Stryker, which comes from the npm registry into a folder of the user's cache: it is needed by
 * nobody else. They are made in copies of the sources, below the system's folder for temporary files.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { globSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Random } from '../src/base/random.ts'
import { repositoryRoot } from '../test/groups.ts'
import { copyOfRepository } from './copy-of-repository.ts'

/** What has to be right for results to be: who commits, who begins anew, what a store takes over and takes back. */
const protocol = [
  'src/engine/commit/commits.ts',
  'src/engine/commit/committer.ts',
  'src/engine/commit/outcome.ts',
  'src/engine/commit/outgoing.ts',
  'src/engine/commit/producer.ts',
  'src/engine/group/membership.ts',
  'src/engine/recovery/recovery.ts',
  'src/engine/recovery/restarts.ts',
  'src/engine/restore/restorer.ts',
  'src/engine/restore/store-replay.ts',
  'src/lanes/levels/lane-barrier.ts',
  'src/lanes/levels/level-state.ts',
  'src/lanes/outputs.ts',
  'src/lanes/stores/restore.ts',
  'src/state/rows/sealed.ts',
  'src/state/stores/retention-clock.ts',
  'src/state/table/sealed-epoch.ts',
  'src/state/table/undo-log.ts',
]

const version = '10.1.1'
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), `millrace-stryker-${version}`)
/** A mistake that makes the simulators stand still is noticed by that: so much longer do they take than over sound sources. */
const standstillFactor = 4

interface Position {
  readonly line: number
  readonly column: number
}

/** As Stryker tells it; lines and columns are counted from 0. */
interface Mistake {
  readonly fileName: string
  readonly location: { readonly start: Position; readonly end: Position }
  readonly replacement: string
  /** Of a kind that is left out: `Ignored`. */
  readonly status?: string
}

interface Instrumenter {
  instrument(
    files: ReadonlyArray<{ readonly name: string; readonly content: string; readonly mutate: boolean }>,
    options: object,
  ): Promise<{ readonly mutants: readonly Mistake[] }>
}

interface Place {
  readonly file: string
  readonly isIn: (line: number) => boolean
}

async function stryker(): Promise<Instrumenter> {
  const package_ = join(cache, 'node_modules', '@stryker-mutator', 'instrumenter')
  if (!existsSync(package_)) {
    mkdirSync(cache, { recursive: true })
    writeFileSync(join(cache, 'package.json'), '{ "private": true }\n')
    const what = `@stryker-mutator/instrumenter@${version}`
    const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', what], {
      cwd: cache,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    if (status !== 0) throw new Error(`Stryker could not be installed into ${cache}`)
  }
  const silent = { debug: () => undefined, info: () => undefined, isDebugEnabled: () => false }
  const module = (await import(join(package_, 'dist', 'src', 'index.js'))) as {
    Instrumenter: new (log: object) => Instrumenter
  }
  return new module.Instrumenter(silent)
}

function placesOf(what: string): Place[] {
  const [path = '', lines] = what.split(':')
  const absolute = resolve(path)
  if (!existsSync(absolute)) throw new Error(`there is no ${path}`)
  const inside = relative(repositoryRoot, absolute)
  const files = statSync(absolute).isDirectory() ? globSync(`${inside}/**/*.ts`, { cwd: repositoryRoot }) : [inside]
  const [first = 1, last = Number.POSITIVE_INFINITY] = lines?.split('-').map(Number) ?? []
  return files.sort().map((file) => ({ file, isIn: (line) => line >= first && line <= last }))
}

async function mistakesIn(places: readonly Place[]): Promise<Mistake[]> {
  const instrumenter = await stryker()
  const all: Mistake[] = []
  for (const { file, isIn } of places) {
    const content = readFileSync(join(repositoryRoot, file), 'utf8')
    const { mutants } = await instrumenter.instrument([{ name: file, content, mutate: true }], {
      plugins: null,
      ignorers: [],
      // What is said in a message decides nothing.
      excludedMutations: ['StringLiteral'],
      noHeader: true,
    })
    all.push(...mutants.filter(({ location, status }) => status !== 'Ignored' && isIn(location.start.line + 1)))
  }
  return all
}

function drawn<T>(items: readonly T[], count: number, by: number): T[] {
  const random = new Random(by)
  const left = [...items]
  const result: T[] = []
  while (result.length < count && left.length > 0) result.push(...left.splice(random.int(left.length), 1))
  return result
}

/** Where in a text of these lines a position is. */
function offsetOf(text: string, { line, column }: Position): number {
  let at = 0
  for (let n = 0; n < line; n++) at = text.indexOf('\n', at) + 1
  return at + column
}

/** The last line of what notices it; undefined: nothing does. */
function noticedBy(
  folder: string,
  commands: ReadonlyArray<readonly string[]>,
  timeoutMs?: number,
): Promise<string | undefined> {
  const [first, ...others] = commands
  if (first === undefined) return Promise.resolve(undefined)
  return new Promise((done) => {
    const child = spawn(process.execPath, [...first], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    const hear = (bytes: Buffer): void => {
      said = (said + String(bytes)).slice(-4000)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    const deadline = timeoutMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    child.on('close', (code) => {
      clearTimeout(deadline)
      if (code === 0) done(noticedBy(folder, others, timeoutMs))
      else
        done(
          code === null
            ? 'it stands still'
            : (/.*(?:seed \d+:|Error|error TS|✖).*/.exec(said)?.[0]?.trim() ?? 'it ends'),
        )
    })
  })
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    draw: { type: 'string' },
    by: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '2' },
    tests: { type: 'string', multiple: true, default: [] },
  },
})

const all = await mistakesIn((positionals.length > 0 ? positionals : protocol).flatMap(placesOf))
const mistakes = values.draw === undefined ? all : drawn(all, Number(values.draw), Number(values.by))
process.stdout.write(`${mistakes.length} of ${all.length} mistakes\n`)
const commands = [
  ['test/simulation/notice.ts', values.seeds],
  ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--noEmit'],
  ...values.tests.map((files) => ['--test', ...files.split(',')]),
]

const jobs = Math.min(Number(values.jobs), mistakes.length)

/** How long a sound copy takes on this machine, with as many beside it as there will be. What it notices is no mistake's. */
async function soundMs(folder: string): Promise<number> {
  const startedAtMs = performance.now()
  const by = await noticedBy(folder, commands)
  if (by !== undefined) throw new Error(`the sources are not sound to begin with: ${by}`)
  return performance.now() - startedAtMs
}

let noticed = 0
let next = 0
async function work(): Promise<void> {
  const folder = copyOfRepository('millrace-mutants-')
  const timeoutMs = standstillFactor * (await soundMs(folder))
  for (let n = next++; n < mistakes.length; n = next++) {
    const { fileName, location, replacement } = mistakes[n] as Mistake
    const file = join(folder, fileName)
    const text = readFileSync(file, 'utf8')
    const [from, to] = [offsetOf(text, location.start), offsetOf(text, location.end)]
    writeFileSync(file, text.slice(0, from) + replacement + text.slice(to))
    const by = await noticedBy(folder, commands, timeoutMs)
    writeFileSync(file, text)
    if (by !== undefined) noticed++
    const change = `${text.slice(from, to)}  →  ${replacement}`.replace(/\s*\n\s*/g, ' ')
    const at = `${fileName}:${location.start.line + 1}:${location.start.column + 1}`
    process.stdout.write(
      `${n + 1} ${by === undefined ? 'SURVIVES' : 'noticed'} ${at}  ${change}${by ? `  (${by})` : ''}\n`,
    )
  }
  rmSync(folder, { recursive: true, force: true })
}

await Promise.all(Array.from({ length: jobs }, work))
process.stdout.write(`${noticed} of ${mistakes.length} mistakes are noticed\n`)
