/**
 * Backlogs before slow functions, one after the other: `node scripts/slow-matrix.ts [kind…] [--broker embedded|kafka]
 * [--store memory|lmdb] [--records 100000] [--seconds 120] [--kills 2] [--busy 6] [--core 1]`. Each runs as a process of its
 * own, is killed under way and judged by what it has committed. Prints a line for each, and ends with 1 where one does not
 * hold. `--broker kafka` takes the cluster at `KAFKA_BOOTSTRAP_SERVERS`, or starts one. With `--core` the process and the
 * busy loops share that core: beside one loop it has a quarter of it.
 */
import { parseArgs } from 'node:util'
import { kinds } from '../test/engine/support/backlog/kinds.ts'
import { type Outcome, Scene } from '../test/engine/support/backlog/scene.ts'
import { kafkaForTests, type TestKafka } from '../test/support/kafka.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    broker: { type: 'string', default: 'embedded' },
    store: { type: 'string', default: 'memory' },
    records: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '120' },
    kills: { type: 'string', default: '2' },
    busy: { type: 'string', default: '0' },
    core: { type: 'string' },
    set: { type: 'string', multiple: true, default: [] },
  },
})

/** Committed offsets grow within this, or two calls. */
const longestGapMs = 10_000
const mostBytes = 1 << 30

function faultsOf({ committed, complaints, faults, longestGapMs: gap, rssBytes }: Outcome): string[] {
  return [
    ...(committed === 0 ? ['nothing was committed'] : []),
    ...faults,
    ...complaints,
    ...(gap > longestGapMs ? [`nothing was committed for ${gap} ms`] : []),
    ...(rssBytes > mostBytes ? [`it took ${rssBytes >> 20} MB`] : []),
  ]
}

const wanted = positionals.length > 0 ? positionals : Object.keys(kinds)
const kafka = values.broker === 'kafka' ? await kafkaForTests() : undefined
if (kafka !== undefined && 'skip' in kafka) throw new Error(kafka.skip)
const running = kafka as TestKafka | undefined
let failed = 0
for (const kind of wanted) {
  const of = kinds[kind]
  if (of === undefined) throw new Error(`there is no ${kind}; give some of ${Object.keys(kinds).join(', ')}`)
  const scene = new Scene({
    ...of(Number(values.records)),
    name: `backlog-${kind}-${Date.now()}`,
    ...(running && { bootstrap: running.bootstrap }),
    store: values.store === 'lmdb' ? 'lmdb' : 'memory',
    kills: Number(values.kills),
    seconds: Number(values.seconds),
    busy: Number(values.busy),
    ...(values.core !== undefined && { core: Number(values.core) }),
    config: Object.fromEntries(values.set.map((pair) => pair.split('=') as [string, string])),
  })
  const outcome = await scene.play().catch((error: Error) => {
    process.stdout.write(`FAILS ${kind} ${values.broker} ${values.store}: ${error.message}\n`)
  })
  if (!outcome) {
    failed++
    continue
  }
  const faults = faultsOf(outcome)
  if (faults.length > 0) failed++
  const { committed, seconds, steps, kills, longestStartMs, rssBytes, earlyRssBytes, cores, mostCalls } = outcome
  process.stdout.write(
    `${faults.length === 0 ? 'holds' : 'FAILS'} ${kind} ${values.broker} ${values.store}: ${committed} committed in ${seconds.toFixed(0)} s, ` +
      `${steps} steps, longest gap ${outcome.longestGapMs} ms, ${kills} kills (up after ${longestStartMs} ms), ${rssBytes >> 20} MB (${earlyRssBytes >> 20} early), ` +
      `${cores.toFixed(2)} cores${mostCalls > 0 ? `, ${mostCalls} calls at once` : ''}\n`,
  )
  for (const fault of faults.slice(0, 10)) process.stdout.write(`  ${fault}\n`)
}
await running?.stop()
process.exitCode = failed > 0 ? 1 : 0
