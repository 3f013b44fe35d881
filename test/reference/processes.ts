/** A program as a process of its own, by the command line, and its sudden end. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type RunningCommand, startMillrace } from '../support/millrace.ts'
import type { Program } from './program.ts'

export type Start = (...more: string[]) => RunningCommand

/** Answers what starts it, as often as it is called. `application`: its id, where several share a broker. */
export function programProcess(
  folder: string,
  program: Program,
  config: Readonly<Record<string, unknown>>,
  application = 'reference',
): Start {
  const file = join(folder, 'program.json')
  writeFileSync(file, JSON.stringify(program))
  const settings = Object.entries(config).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  const app = join(import.meta.dirname, 'apps', 'program.ts')
  const env = { REFERENCE_PROGRAM: file, REFERENCE_APPLICATION: application }
  return (...more) => startMillrace(['run', app, ...settings, ...more], { env, timeoutMs: 900_000 })
}

/** Kills it some time after it runs. */
export async function killed(running: RunningCommand, after: () => Promise<void>): Promise<void> {
  await eventually('it runs', () => /→ RUNNING/.test(running.stderr()) || running.child.exitCode !== null, 300_000)
  await after()
  running.child.kill('SIGKILL')
  const { signal, stderr } = await running.result
  assert.equal(signal, 'SIGKILL', `it ended by itself: ${stderr}`)
}
