/**
 * Runs an example that says what comes out. Comment lines of the example are its script:
 *
 *     // orders ← ann: { amount: 5 } @ 10s      a record goes in, ten seconds after the beginning of time
 *     // 1m passes                              the wall clock goes on
 *     // totals → ann: 5                        this is written, and in this order
 *     // totals → ann [0s, 1m): 5               the key of a window
 *     // prints 5                               `print(5)` was called
 */
import { runInNewContext } from 'node:vm'
import { tryParseDuration } from '../../src/base/duration.ts'
import { defineApp, type Topology } from '../../src/index.ts'
import { type OutputRecord, TopologyTestDriver } from '../../src/testing/index.ts'
import { type Example, givens, imports } from './snippets.ts'

export type Step =
  | {
      readonly type: 'feed'
      readonly topic: string
      readonly key: unknown
      readonly value: unknown
      readonly at: number
    }
  | { readonly type: 'wait'; readonly duration: string }

interface Script {
  readonly steps: readonly Step[]
  /** Topic, key and value of each record that is to come out, and what is to be printed. */
  readonly results: readonly Outcome[]
}

export type Outcome = readonly [where: string, key: unknown, value: unknown]

export function scriptOf(text: string): Script {
  const steps: Step[] = []
  const results: Outcome[] = []
  for (const [line] of text.matchAll(/^\s*\/\/ .*$/gm)) {
    const comment = line.trim().slice(3)
    const [, topic = '', key = '', value = '', at] = /^(\S+) ← (.+?): (.*?)(?: @ (\S+))?$/.exec(comment) ?? []
    const [, out = '', outKey = '', outValue = ''] = /^(\S+) → (.+?): (.*)$/.exec(comment) ?? []
    const [, duration] = /^(\d\S*) passes$/.exec(comment) ?? []
    const [, printed] = /^prints (.*)$/.exec(comment) ?? []
    if (topic) steps.push({ type: 'feed', topic, key: keyOf(key), value: literal(value), at: instant(at ?? '0s') })
    if (out) results.push([out, keyOf(outKey), literal(outValue)])
    if (duration) steps.push({ type: 'wait', duration })
    if (printed) results.push(['print', undefined, literal(printed)])
  }
  return { steps, results }
}

function literal(text: string): unknown {
  return structuredClone(runInNewContext(`(${text})`))
}

function instant(text: string): number {
  const ms = tryParseDuration(text)
  if (ms === undefined) throw new Error(`${text} is no duration`)
  return ms
}

/** `ann`, or the key of a window: `ann [0s, 1m)`. */
function keyOf(text: string): unknown {
  const [, key, start = '', end = ''] = /^(\S+) \[(\S+), (\S+)[)\]]$/.exec(text) ?? []
  if (key !== undefined) return { key, start: instant(start), end: instant(end) }
  return text === 'null' ? null : /^[\d'[{]/.test(text) ? literal(text) : text
}

/** The example as a module whose `build` makes the topology. */
export function playable({ text }: Example): string {
  const code = text.replaceAll(/^\s*\/\/.*$/gm, '')
  const given = Object.entries(givens).filter(
    ([name]) => new RegExp(`(?<![.'])\\b${name}\\b`).test(code) && !code.includes(`const ${name} `),
  )
  const made = given.map(([name, { made: source }]) => `  const ${name} = ${source}`)
  return `${imports}\nexport function build(topology: Topology, print: (value: unknown) => void) {\n${made.join('\n')}\n${code}\n}\n`
}

/** What comes out, beside what the example says; equal when all is well. */
export async function play(
  build: (topology: Topology, print: (value: unknown) => void) => void,
  script: Script,
): Promise<{ readonly actual: readonly Outcome[]; readonly expected: readonly Outcome[] }> {
  const actual: Outcome[] = []
  const print = (value: unknown): void => void actual.push(['print', undefined, value])
  const app = defineApp({ applicationId: 'example', build: (topology) => build(topology, print) })
  const driver = new TopologyTestDriver(app)
  const take = ({ topic, key, value }: OutputRecord): void => void actual.push([topic, key, value])
  for (const step of script.steps) {
    if (step.type === 'wait') await driver.advanceWallClock(step.duration)
    else await driver.input(step.topic).pipe(step.key, step.value, { timestamp: step.at })
    driver.readAllOutputs().forEach(take)
  }
  driver.close()
  return { actual, expected: script.results }
}
