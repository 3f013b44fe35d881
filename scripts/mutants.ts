/**
 * Puts small mistakes into sources, one at a time, and reports which of them the tests notice:
 * `npm run mutants -- <file or folder>[:<first line>-<last line>]… [--seeds 60] [--tests <file>]…`. A mistake is judged by the simulators,
 * then by the tests that are named. Those that survive are printed with their place, and want a test or an explanation.
 *
 * The mistakes are made by Stryker, which comes from the npm registry into a folder of the user's cache: it is
 * needed by nobody else. It works on a copy of the repository, below the system's folder for temporary files.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { repositoryRoot } from '../test/groups.ts'

const version = '10.1.1'
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), `millrace-stryker-${version}`)
/** A mistake that makes the simulators stand still is noticed by that. */
const timeoutMs = 300_000

function installStryker(): string {
  const command = join(cache, 'node_modules', '.bin', 'stryker')
  if (existsSync(command)) return command
  mkdirSync(cache, { recursive: true })
  writeFileSync(join(cache, 'package.json'), '{ "private": true }\n')
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', `@stryker-mutator/core@${version}`], {
    cwd: cache,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error(`Stryker could not be installed into ${cache}`)
  return command
}

/** `src/engine/commit:10-20` as Stryker wants it: files by pattern, lines behind a colon. */
function pattern(what: string): string {
  const [path = '', lines] = what.split(':')
  const absolute = resolve(path)
  if (!existsSync(absolute)) throw new Error(`there is no ${path}`)
  const inside = relative(repositoryRoot, absolute)
  if (statSync(absolute).isDirectory()) return `${inside}/**/*.ts`
  return lines === undefined ? inside : `${inside}:${lines}`
}

function copyOfRepository(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-mutants-'))
  for (const part of ['src', 'test', 'conformance', 'package.json', 'tsconfig.json'])
    cpSync(join(repositoryRoot, part), join(folder, part), { recursive: true })
  symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '60' },
    tests: { type: 'string', multiple: true, default: [] },
  },
})
if (positionals.length === 0) {
  process.stderr.write(
    'Name what to put mistakes into, as in: npm run mutants -- src/engine/commit/committer.ts:180-240\n',
  )
  process.exit(2)
}

const stryker = installStryker()
const folder = copyOfRepository()
const checks = [
  `node test/simulation/notice.ts ${values.seeds}`,
  ...(values.tests.length > 0 ? [`node --test ${values.tests.join(' ')}`] : []),
]
writeFileSync(
  join(folder, 'stryker.conf.json'),
  JSON.stringify({
    testRunner: 'command',
    commandRunner: { command: checks.join(' && ') },
    mutate: positionals.map(pattern),
    // What is said in a message decides nothing.
    mutator: { excludedMutations: ['StringLiteral'] },
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: process.stdout.isTTY, reportTests: false, logTests: false },
    concurrency: 2,
    timeoutMS: timeoutMs,
    dryRunTimeoutMinutes: 15,
    tsconfigFile: 'none.json',
    tempDirName: '.copies',
  }),
)
const { status } = spawnSync(stryker, ['run'], { cwd: folder, stdio: 'inherit' })
rmSync(folder, { recursive: true, force: true })
process.exitCode = status ?? 1
