/**
 * Takes each standstill out of the table, one at a time, and runs the test that brings it about: that test has to fail.
 * `node scripts/standstill-rows.ts [<code>…] [--jobs 4]`, all of them where none is named. `WHY_PATIENCE_MS`: how long a test
 * waits for its standstill to be named. Ends with 1 where a test did not notice, or
 * where a standstill of the table has no test here.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { standstillTable } from '../src/view/diagnosis/table.ts'
import { copyOfRepository } from './copy-of-repository.ts'

interface Brought {
  readonly file: string
  /** Part of the names of the tests. */
  readonly test: string
}

const why = 'test/engine/why.test.ts'
const around = 'test/engine/why-around.test.ts'
const group = 'test/engine/why-group.test.ts'
const http = 'test/http/why.test.ts'

const broughtAbout: Readonly<Record<string, Brought>> = {
  FAILED: { file: http, test: 'answers in FAILED' },
  POISON_RECORD: { file: around, test: 'is told with the attempt' },
  FENCED: { file: group, test: 'that was fenced tells by whom' },
  LANE_DOES_NOT_RETURN: { file: why, test: 'is named with lane, node and record' },
  PROMISE_PENDING: { file: why, test: 'a promise that never settles is told with node' },
  CALLS_FAIL: { file: why, test: 'a call that fails and is made again' },
  HOT_KEY: { file: why, test: 'one hot key' },
  LANE_SLOW: { file: why, test: 'a slow function is slow' },
  ENGINE_SILENT: { file: around, test: 'a timestamp extractor that does not return' },
  BROKER_GONE: { file: around, test: 'that is gone is told with its address' },
  COMMIT_UNANSWERED: { file: around, test: 'told with the call and its age' },
  STORE_DISK_FULL: { file: 'test/engine/disk-full.test.ts', test: 'holds the engine while it lasts' },
  BROKER_DISK_FULL: { file: 'test/engine/disk-full.test.ts', test: 'holds the engine until there is room' },
  TRANSACTION_OPEN: { file: around, test: 'an open transaction of another producer' },
  ALIGNMENT_HELD: { file: around, test: 'an alignment group tells' },
  ORDER_HELD: { file: group, test: 'a process that is paused' },
  WATERMARK_HELD: { file: why, test: 'a partition without records that holds the watermark' },
  TIMESTAMP_AHEAD: { file: why, test: 'timestamps ahead of the clock' },
  PAUSED: { file: around, test: 'who paused is told' },
  STOPPING: { file: around, test: 'a process that was told to end' },
  LICENSE_REFUSED: { file: http, test: 'a license that was revoked' },
  STANDBY: { file: http, test: 'a standby names the pod' },
  NOBODY_ACTIVE: { file: 'test/ha/why.test.ts', test: 'a standby tells that no pod is active' },
  GROUP_UNSTEADY: { file: group, test: 'members of the group that come and go' },
  COMMITS_SLOW: { file: around, test: 'that commits slowly is told' },
  RESTORING: { file: http, test: 'a long restore is told' },
  BUFFER_FULL: { file: around, test: 'a full buffer is an effect' },
}

/** Not brought about by one situation: what was before, and what nobody knows. */
const withoutOne = new Set(['RESTARTS', 'UNKNOWN'])

/** Enough on a busy machine; what is not in the table is waited for as long. */
const env = { WHY_PATIENCE_MS: '60000', ...process.env }

function passes(folder: string, { file, test }: Brought): Promise<boolean> {
  const args = ['--test', `--test-name-pattern=${test}`, file]
  return new Promise((done) => {
    const child = spawn(process.execPath, args, { cwd: folder, stdio: 'ignore', env })
    child.on('close', (code) => done(code === 0))
  })
}

/** In words, and whether it is as it should be. */
async function tried(folder: string, code: string): Promise<readonly [boolean, string]> {
  const brought = broughtAbout[code]
  if (brought === undefined) return withoutOne.has(code) ? [true, 'no situation of its own'] : [false, 'NO TEST']
  const table = join(folder, 'src/view/diagnosis/table.ts')
  const whole = readFileSync(table, 'utf8')
  const without = whole.replace('...effectRows,\n]', `...effectRows,\n].filter((row) => row.code !== '${code}')`)
  assert.notEqual(without, whole)
  try {
    if (!(await passes(folder, brought))) return [false, 'FAILS WITH THE ROW IN ITS PLACE']
    writeFileSync(table, without)
    return (await passes(folder, brought)) ? [false, 'NOT NOTICED'] : [true, 'noticed']
  } finally {
    writeFileSync(table, whole)
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: 'string', default: '4' } },
})
const codes = standstillTable.map(({ code }) => code)
const left = positionals.length > 0 ? codes.filter((code) => positionals.includes(code)) : codes
let wrong = 0

async function work(): Promise<void> {
  const folder = copyOfRepository('millrace-standstills-')
  try {
    for (let code = left.shift(); code !== undefined; code = left.shift()) {
      const [isRight, outcome] = await tried(folder, code)
      if (!isRight) wrong++
      process.stdout.write(`${code}: ${outcome}\n`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await Promise.all(Array.from({ length: Number(values.jobs) }, work))
process.exitCode = wrong > 0 ? 1 : 0
