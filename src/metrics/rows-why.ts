import { stageTimes as kinds } from '../view/diagnosis/finding.ts'
import { standstillTable } from '../view/diagnosis/table.ts'
import { flag, type MetricRow } from './table-types.ts'

const codes = standstillTable.map(({ code }) => code)

/** What `/why` finds. Without places, so that the number of series is fixed. */
export const whyRows: readonly MetricRow[] = [
  {
    name: 'engine_standstill',
    type: 'gauge',
    labels: ['code'],
    help: 'Whether `/why` has a finding of this code.',
    source: 'diagnosis',
    samples: ({ findings }) =>
      codes.map((code) => ({ labels: { code }, value: flag(findings.some((finding) => finding.code === code)) })),
  },
  {
    name: 'engine_standstill_seconds',
    type: 'gauge',
    labels: ['code'],
    help: 'For how long it has had one; 0 without.',
    source: 'diagnosis',
    samples: ({ findings, nowMs }) =>
      codes.map((code) => {
        const begins = findings.filter((finding) => finding.code === code).map(({ sinceMs }) => sinceMs)
        return { labels: { code }, value: begins.length === 0 ? 0 : Math.max(0, nowMs - Math.min(...begins)) / 1000 }
      }),
  },
  {
    name: 'engine_stage_seconds_total',
    type: 'counter',
    labels: ['stage', 'time'],
    help: 'How fetching, dispatching, committing and the broker spend their time: busy, idle, held by what is behind, or waiting. Together the wall clock; as seen four times a second.',
    source: 'diagnosis',
    samples: ({ stageTimes }) =>
      stageTimes.flatMap(({ stage, ms }) => kinds.map((time) => ({ labels: { stage, time }, value: ms[time] / 1000 }))),
  },
]
