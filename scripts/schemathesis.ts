/**
 * Runs Schemathesis on `/openapi.json` of a live server: `node scripts/schemathesis.ts [address]`. Without an address it
 * serves a fake engine. Schemathesis comes from the Python package registry, into a virtual environment that is kept in the
 * user's cache folder.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

const version = '4.32.5'
const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
const environment = join(cache, `millrace-schemathesis-${version}`)
const command = join(environment, 'bin', 'schemathesis')

/** Undefined where it is there afterwards, else why not. */
export function installSchemathesis(): string | undefined {
  if (existsSync(command)) return undefined
  mkdirSync(cache, { recursive: true })
  const steps: ReadonlyArray<readonly [program: string, arguments_: readonly string[]]> = [
    ['python3', ['-m', 'venv', environment]],
    [
      join(environment, 'bin', 'pip'),
      ['install', '--quiet', '--disable-pip-version-check', `schemathesis==${version}`],
    ],
  ]
  for (const [program, arguments_] of steps) {
    const { status, stderr, error } = spawnSync(program, arguments_, { encoding: 'utf8' })
    if (status !== 0) return `${program} ${arguments_.join(' ')} failed: ${error?.message ?? stderr.trim().slice(-500)}`
  }
  return undefined
}

/** @returns the exit code and what it printed. */
export async function runSchemathesis(url: string, examples = 40): Promise<{ code: number; output: string }> {
  // It keeps a folder of its own where it runs.
  const run = spawn(
    command,
    [
      'run',
      `${url}/openapi.json`,
      '--checks=all',
      '--phases=examples,coverage,fuzzing',
      `--max-examples=${examples}`,
      '--seed=20260301',
      '--no-color',
      '--generation-database=none',
    ],
    { cwd: tmpdir() },
  )
  let output = ''
  run.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  run.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  return new Promise((resolve, reject) => {
    run.on('error', reject)
    run.on('close', (code) => resolve({ code: code ?? 1, output }))
  })
}

async function main(): Promise<number> {
  const missing = installSchemathesis()
  if (missing !== undefined) {
    process.stderr.write(`${missing}\n`)
    return 2
  }
  const address = process.argv[2]
  if (address !== undefined) {
    const { code, output } = await runSchemathesis(address)
    process.stdout.write(output)
    return code
  }
  const { startFake } = await import('../test/http/support/fake-subject.ts')
  const { standby } = await import('../test/http/support/ha-samples.ts')
  const instance = await startFake({ ha: standby })
  const { code, output } = await runSchemathesis(instance.url)
  await instance.stop()
  process.stdout.write(output)
  return code
}

if (import.meta.main) process.exitCode = await main()
