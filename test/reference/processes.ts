/** A program as a process of its own, by the command line, and its sudden end. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type RunningCommand, startMillrace } from '../support/millrace.ts'
import type { Program } from './program.ts'

export type Start = (...more: string[]) => RunningCommand

/**
 * Answers what starts it, as often as it is called, each time with the settings of then. `application`: its id, where
 * several share a broker.
 */
export function programProcess(
  folder: string,
  program: Program,
  configOfLife: () => Readonly<Record<string, unknown>>,
  application = 'reference',
): Start {
  const file = join(folder, 'program.json')
  writeFileSync(file, JSON.stringify(program))
  const app = join(import.meta.dirname, 'apps', 'program.ts')
  const env = { REFERENCE_PROGRAM: file, REFERENCE_APPLICATION: application }
  return (...more) => {
    const settings = Object.entries(configOfLife()).flatMap(([key, value]) => ['--set', `${key}=${value}`])
    return startMillrace(['run', app, ...settings, ...more], { env, timeoutMs: 900_000 })
  }
}

/** Kills it some time after it runs. */
export async function killed(running: RunningCommand, after: () => Promise<void>): Promise<void> {
  try {
    await eventually('it runs', () => /→ RUNNING/.test(running.stderr()) || running.child.exitCode !== null, 300_000)
    await after()
  } catch (error) {
    throw new Error(`a process that is to be killed did not get so far: ${running.stderr()}`, { cause: error })
  } finally {
    running.child.kill('SIGKILL')
  }
  const { signal, stderr } = await running.result
  assert.equal(signal, 'SIGKILL', `it ended by itself: ${stderr}`)
}
