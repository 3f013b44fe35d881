/**
 * Figures of a standstill for people, beside what its test asserts: with `WHY_TIMES=<file>` each one's line says how long
 * after its begin it was named, and how long answers took. With `WHY_BUSY=1` the machine is kept busy meanwhile.
 */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WhyAnswer } from '../../src/view/diagnosis/answer.ts'
import { keepBusy } from '../reference/busy.ts'

const { WHY_TIMES: file, WHY_BUSY: busy } = process.env
const busyAtMostMs = 120_000
const moreAnswers = 30
const pauseMs = 100

/** Asks the way that is given, and notes what each answer took. */
export interface TimedAsk {
  readonly ask: () => Promise<WhyAnswer>
  readonly times: number[]
}

function timed(ask: () => Promise<WhyAnswer>): TimedAsk {
  const times: number[] = []
  return {
    times,
    ask: async () => {
      const startedAt = performance.now()
      const answer = await ask()
      times.push(performance.now() - startedAt)
      return answer
    },
  }
}

/** `until` asks until the standstill is named. Then it is asked for some more times whether it is named each time. */
export async function withTimes<T>(
  code: string,
  ask: () => Promise<WhyAnswer>,
  until: (ask: () => Promise<WhyAnswer>) => Promise<T>,
): Promise<T> {
  if (file === undefined) return until(ask)
  const release = busy === '1' ? keepBusy(busyAtMostMs) : () => Promise.resolve()
  const startedAt = Date.now()
  const { ask: asked, times } = timed(ask)
  try {
    const result = await until(asked)
    const namedAt = Date.now()
    const asks = times.length
    const instead: string[] = []
    let since = Number.NaN
    for (let n = 0; n < moreAnswers; n++) {
      const { findings, status } = await asked()
      const [first] = findings
      if (first?.code !== code) instead.push(first?.code ?? status)
      else if (Number.isNaN(since)) since = Date.parse(first.since)
      await sleep(pauseMs)
    }
    const line = {
      code,
      afterBeginMs: namedAt - since,
      afterFirstAskMs: namedAt - startedAt,
      answers: times.length,
      slowestMs: Math.round(Math.max(...times)),
      slowestOnceNamedMs: Math.round(Math.max(...times.slice(asks))),
      named: `${moreAnswers - instead.length} of ${moreAnswers}`,
      instead: [...new Set(instead)],
      busy: busy === '1',
    }
    appendFileSync(file, `${JSON.stringify(line)}\n`)
    return result
  } finally {
    await release()
  }
}
