/**
 * `node test/reference/run-examples.ts [records] [repetitions] [split] [minutes]`: the examples with 1, 2, 4 and 8 lanes,
 * on both kinds of stores, their input there before the engine starts or fed while it runs. It goes on where it stopped,
 * by what REFERENCE_JOURNAL says. REFERENCE_EXAMPLES: some of them alone, by name; REFERENCE_PROCESSES=2: through topics, two
 * processes share the work; REFERENCE_FROM: the first repetition; REFERENCE_CONFIG: further settings, as JSON.
 */
import { examples } from './examples.ts'
import { Journal } from './journal.ts'
import { expectedBehindTopic, expectedOf } from './results.ts'
import type { Setting } from './run-engine.ts'

const [records = 10_000, repetitions = 1] = process.argv.slice(2, 4).map(Number)
const split = process.argv[4] === 'repartition-topics' ? 'repartition-topics' : 'in-process'
const processes = Number(process.env.REFERENCE_PROCESSES ?? 1)
const from = Number(process.env.REFERENCE_FROM ?? 1)
const config = JSON.parse(process.env.REFERENCE_CONFIG ?? '{}') as NonNullable<Setting['config']>
const only = process.env.REFERENCE_EXAMPLES?.split(',')
const end = Date.now() + Number(process.argv[5] ?? 60) * 60_000
const journal = new Journal(process.env.REFERENCE_JOURNAL ?? 'examples.ndjson', process.env.REFERENCE_AGAIN === '1')

/** When its timers fire between records depends on what is known of all partitions when a record comes. */
const fedBefore = new Set(['quietProducts'])

/** Time has come to each record before it is taken there, so that its timers fire in another order. */
const isBehindTopic = (name: string): boolean => fedBefore.has(name) && split === 'repartition-topics'

const titles: string[] = []
for (let repetition = from; repetition <= repetitions; repetition++) {
  for (const [name, make] of Object.entries(examples)) {
    if (only !== undefined && !only.includes(name)) continue
    for (const slow of [false, true]) {
      const program = make(repetition, records, slow)
      let expected: ReturnType<typeof expectedOf> | undefined
      for (const live of fedBefore.has(name) ? [false] : [false, true]) {
        for (const store of ['memory', 'lmdb'] as const) {
          for (const lanes of [1, 2, 4, 8]) {
            const others = Object.entries(config).map(([key, value]) => `, ${key}=${value}`)
            const how = `${slow ? ', slow' : ''}${live ? ', live' : ''}, ${store}, ${lanes} lanes, ${split}${processes > 1 ? `, ${processes} processes` : ''}${others.join('')}`
            const title = `${name}${how}, ${records} records, repetition ${repetition}`
            titles.push(title)
            if (journal.isDone(title) || Date.now() >= end) continue
            expected ??= isBehindTopic(name) ? expectedBehindTopic(program) : expectedOf(program)
            await journal.run(title, program, { lanes, store, commitMs: 100, split, live, processes, config }, expected)
          }
        }
      }
    }
  }
}
process.exitCode = journal.summary(titles) ? 0 : 1
