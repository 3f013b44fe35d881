/**
 * What `/why` and `/debug/threads` cost where they are wanted: `node scripts/why-cost.ts threads [lanes]` asks for the threads while
 * every lane is blocked outside of JavaScript; `node scripts/why-cost.ts large [partitions] [lanes] [keys]` asks why with many
 * partitions, lanes and keys that wait, and takes the time beside an address that does not exist.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../bench/support/usage.ts'
import { type Runtime, startRuntime } from '../src/runtime/index.ts'
import type { ThreadsSnapshot } from '../src/view/view.ts'
import { type In, produce } from '../test/engine/support/engine.ts'
import { repositoryRoot } from '../test/groups.ts'
import { ask } from '../test/http/support/client.ts'

const [what = 'threads', ...numbers] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'millrace-why-cost-'))

function start(partitions: number, lanes: number): Promise<Runtime> {
  return startRuntime({
    application: join(repositoryRoot, 'test/engine/apps/standing.ts'),
    config: {
      'runtime.http.enabled': true,
      'runtime.http.port': 0,
      'runtime.http.host': '127.0.0.1',
      'runtime.shutdown.timeout': 500,
      'broker.embedded.partitions': partitions,
      'engine.lanes.count': lanes,
      'engine.state.dir': folder,
      'log.level': 'error',
    },
    environment: {},
  })
}

async function untilRunning(runtime: Runtime): Promise<string> {
  while (runtime.view.state().current !== 'RUNNING') await sleep(50)
  const { url } = runtime
  if (url === undefined) throw new Error('the interface is off')
  return url
}

async function threads(lanes: number): Promise<void> {
  const runtime = await start(4 * lanes, lanes)
  try {
    const url = await untilRunning(runtime)
    // Lanes that have seen records are given more than one at a time.
    const healthy = Array.from({ length: 5000 }, (_, n): In => ({ key: `k${n}`, value: {} }))
    await produce(runtime.broker, 'works', healthy, 4 * lanes)
    await runtime.untilIdle()
    const waits = Array.from({ length: 100 * lanes }, (_, n): In => ({ key: `k${n}`, value: { do: 'wait' } }))
    await produce(runtime.broker, 'works', waits, 4 * lanes)
    await sleep(3000)
    for (const when of ['first', 'second', 'third']) {
      const startedAt = performance.now()
      const { status, body } = await ask(url, { path: '/debug/threads' })
      const ms = performance.now() - startedAt
      const { engineThreads } = JSON.parse(body) as ThreadsSnapshot
      const shown = engineThreads.filter(({ stack }) => stack.some((frame) => frame.includes('waitForLock'))).length
      process.stdout.write(
        `${when}: ${status} in ${ms.toFixed(0)} ms, ${shown} of ${lanes} lanes show where they wait\n`,
      )
    }
  } finally {
    await runtime.kill()
  }
}

async function large(partitions: number, lanes: number, keys: number): Promise<void> {
  const runtime = await start(partitions, lanes)
  try {
    const url = await untilRunning(runtime)
    const calls = Array.from({ length: keys }, (_, n): In => ({ key: `k${n}`, value: { do: 'pend' } }))
    for (let from = 0; from < keys; from += 10_000)
      await produce(runtime.broker, 'calls', calls.slice(from, from + 10_000), partitions)
    await sleep(15_000)
    const timeOf = async (path: string): Promise<readonly [ms: number, bytes: number]> => {
      const startedAt = performance.now()
      const { body } = await ask(url, { path })
      return [performance.now() - startedAt, Buffer.byteLength(body)]
    }
    const pairs: Array<readonly [why: number, none: number]> = []
    let most = 0
    for (let i = 0; i < 100; i++) {
      const [why, bytes] = await timeOf('/why')
      const [none] = await timeOf('/none')
      most = Math.max(most, bytes)
      pairs.push([why, none])
    }
    const ms = median(pairs.map(([why]) => why))
    const over = median(pairs.map(([why, none]) => why - none))
    const { body } = await ask(url, { path: '/why' })
    process.stdout.write(
      `${partitions} partitions, ${lanes} lanes, ${keys} keys: /why takes ${ms.toFixed(1)} ms (median), ` +
        `${over.toFixed(1)} ms more than a 404, at most ${most} bytes; ${(JSON.parse(body) as { verdict: string }).verdict}\n`,
    )
  } finally {
    await runtime.kill()
  }
}

try {
  const [first, second, third] = numbers.map(Number)
  if (what === 'threads') await threads(first ?? 2)
  else await large(first ?? 500, second ?? 64, third ?? 100_000)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
