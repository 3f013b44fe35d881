/** Asks `GET /why` of a running application over its socket. */
import assert from 'node:assert/strict'
import type { WhyAnswer, WhyFinding } from '../../../src/view/diagnosis/answer.ts'
import { eventually } from '../../support/millrace.ts'
import { withTimes } from '../../support/why-times.ts'
import type { In, TestEngine } from './engine.ts'

export const web = { 'runtime.http.enabled': true, 'runtime.http.port': 0, 'runtime.http.host': '127.0.0.1' }
export const quiet = { ...web, 'watermark.idleness-timeout': '1s', 'runtime.shutdown.timeout': 500 }
/** Long, because a machine may be busy with other things: what is waited for decides, not the time. */
export const patienceMs = Number(process.env.WHY_PATIENCE_MS ?? 180_000)

export async function why(engine: TestEngine): Promise<WhyAnswer> {
  const response = await fetch(`${engine.runtime.url}/why`)
  assert.equal(response.status, 200)
  return (await response.json()) as WhyAnswer
}

/** The first finding is the standstill's own, and no other cause is claimed. */
export async function found(engine: TestEngine, code: string, wanted: (finding: WhyFinding) => boolean = () => true) {
  let answer: WhyAnswer | undefined
  const named = (ask: () => Promise<WhyAnswer>): Promise<void> =>
    eventually(
      `${code} is found`,
      async () => {
        answer = await ask()
        const [first] = answer.findings
        return first !== undefined && first.code === code && wanted(first)
      },
      patienceMs,
    )
  await withTimes(code, () => why(engine), named).catch((error: unknown) => {
    throw new Error(`${code} is not found: ${JSON.stringify(answer)}`, { cause: error })
  })
  const { findings, verdict, status, since } = answer as WhyAnswer
  const [first] = findings as [WhyFinding]
  assert.equal(verdict, first.sentence)
  assert.equal(status, first.severity)
  assert.equal(since, first.since)
  return { first, answer: answer as WhyAnswer, codes: findings.map((each) => each.code) }
}

/** Codes of findings that no other one brings about. */
export function causesIn({ findings }: WhyAnswer): string[] {
  const effects = new Set(findings.flatMap(({ leadsTo }) => leadsTo))
  return findings.map(({ code }) => code).filter((code) => !effects.has(code))
}

export async function flows(engine: TestEngine): Promise<void> {
  await eventually('nothing is found any more', async () => (await why(engine)).status === 'FLOWING', patienceMs)
}

/** Records that are there and not yet committed. */
export function lagOf(engine: TestEngine): number {
  const partitions = engine.runtime.view.offsets()?.sources.flatMap((source) => source.partitions) ?? []
  return partitions.reduce((sum, { logEndOffset, committedOffset }) => sum + logEndOffset - committedOffset, 0)
}

/** Does it again and again, one after the other, until `during` is over. */
export async function meanwhile<T>(action: () => Promise<void>, during: () => Promise<T>, everyMs = 200): Promise<T> {
  let isOver = false
  const again = async (): Promise<void> => {
    while (!isOver) {
      await action()
      await new Promise((done) => setTimeout(done, everyMs))
    }
  }
  const acting = again()
  try {
    return await during()
  } finally {
    isOver = true
    await acting
  }
}

/** Never lets the work come to an end while `during` goes on, however long that takes. */
export function keptBusy<T>(
  engine: TestEngine,
  topic: string,
  records: readonly In[],
  during: () => Promise<T>,
): Promise<T> {
  const more = async (): Promise<void> => {
    if (lagOf(engine) < records.length / 2) await engine.put(topic, records)
  }
  return meanwhile(more, during, 500)
}

/**
 * Asks all of them again and again until `during` is over. Every finding is a false alarm but those that are true here,
 * and what they bring about.
 */
export async function watched(
  trueHere: readonly string[],
  ask: () => ReadonlyArray<Promise<WhyAnswer | undefined>>,
  during: () => Promise<void>,
): Promise<{ readonly falseAlarms: readonly string[]; readonly answers: number }> {
  const falseAlarms = new Map<string, string>()
  let answers = 0
  const look = async (): Promise<void> => {
    for (const answer of await Promise.all(ask())) {
      if (answer === undefined) continue
      answers++
      const isTrue = ({ code }: WhyFinding): boolean => trueHere.includes(code)
      const broughtAbout = new Set(answer.findings.filter(isTrue).flatMap(({ leadsTo }) => leadsTo))
      for (const finding of answer.findings) {
        if (isTrue(finding) || broughtAbout.has(finding.code)) continue
        const { code, place, sentence } = finding
        falseAlarms.set(`${answer.process} ${code} ${JSON.stringify(place)}`, sentence)
      }
    }
  }
  await meanwhile(look, during)
  return { falseAlarms: [...falseAlarms].map(([name, sentence]) => `${name}: ${sentence}`), answers }
}
