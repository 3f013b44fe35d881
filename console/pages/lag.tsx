import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAsk } from '../ask/live.ts'
import type { Consumer, Offsets } from '../ask/model.ts'
import { instant, lasting, number } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

interface Row {
  readonly name: string
  readonly committed: number
  readonly end: number
  readonly lag: number
  readonly withheld: number
}

export function LagPage(): JSX.Element {
  const offsets = useAsk<Offsets>('/offsets')
  const consumer = useAsk<Consumer>('/consumer')
  const [search, setSearch] = useState('')
  const change = useChange(offsets.value?.totalLag, offsets.atMs)
  const rows = (offsets.value?.sources ?? []).flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, committedOffset, logEndOffset, lag, withheld }): Row => {
      return { name: `${topic}:${partition}`, committed: committedOffset, end: logEndOffset, lag, withheld }
    }),
  )
  const shown = rows.filter(({ name }) => name.includes(search.trim())).sort((a, b) => b.lag - a.lag)
  const { value } = consumer
  const assigned = Object.entries(value?.assignment ?? {}).filter(([name]) => name.includes(search.trim()))
  return (
    <>
      <Panel title="Lag" path="/offsets" kept={offsets} wide>
        <p class="figures">
          <span>
            <b>{number(offsets.value?.totalLag)}</b> records
          </span>
          <span>{trend(offsets.value?.totalLag, change)}</span>
          <label>
            Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          </label>
        </p>
        <Table
          caption="Partitions, the one with the most lag first"
          rows={shown}
          keyOf={({ name }) => name}
          columns={[
            { name: 'Partition', cell: ({ name }) => name },
            { name: 'Committed', right: true, cell: ({ committed }) => number(committed) },
            { name: 'End', right: true, cell: ({ end }) => number(end) },
            { name: 'Lag', right: true, cell: ({ lag }) => number(lag) },
            { name: 'Withheld by open transactions', right: true, cell: ({ withheld }) => number(withheld) },
          ]}
        />
      </Panel>
      <Panel title="Buffers" path="/consumer" kept={consumer} wide>
        {value !== undefined && (
          <p>
            Group {value.group.groupId}, generation {value.group.generationId}, member {value.group.memberId}. Last
            commit {instant(value.lastCommitMs)}.
          </p>
        )}
        <Table
          caption="Buffers of partitions"
          rows={assigned}
          keyOf={([name]) => name}
          empty="No partition is assigned."
          columns={[
            { name: 'Partition', cell: ([name]) => name },
            { name: 'Buffered', right: true, cell: ([, { buffered }]) => number(buffered) },
            { name: 'Pauses at', right: true, cell: ([, { bufferCapacity }]) => number(bufferCapacity) },
            { name: 'Fetched', cell: ([, { paused }]) => (paused ? 'paused' : 'yes') },
          ]}
        />
      </Panel>
    </>
  )
}

/** Records a second by which it grows, from one answer to the next, smoothed. */
function useChange(value: number | undefined, atMs: number | undefined): number | undefined {
  const before = useRef<{ value: number; atMs: number } | undefined>(undefined)
  const [change, setChange] = useState<number | undefined>(undefined)
  useEffect(() => {
    if (value === undefined || atMs === undefined) return
    const last = before.current
    before.current = { value, atMs }
    if (last === undefined || atMs <= last.atMs) return
    const rate = ((value - last.value) * 1000) / (atMs - last.atMs)
    setChange((old) => (old === undefined ? rate : old * 0.7 + rate * 0.3))
  }, [value, atMs])
  return change
}

function trend(lag: number | undefined, change: number | undefined): string {
  if (lag === undefined || change === undefined) return ''
  if (Math.abs(change) < 0.5) return 'steady'
  if (change > 0) return `grows by ${number(change)}/s`
  return `shrinks by ${number(-change)}/s, done in about ${lasting((lag / -change) * 1000)}`
}
