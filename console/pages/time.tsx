import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useAsk } from '../ask/live.ts'
import type { PartitionTime, Watermarks } from '../ask/model.ts'
import { compareNames, instant, lasting } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

type Row = PartitionTime & { readonly name: string; readonly counts: number | null }

export function TimePage(): JSX.Element {
  const watermarks = useAsk<Watermarks>('/watermarks')
  const [search, setSearch] = useState('')
  const { value } = watermarks
  const rows = value === undefined ? [] : rowsOf(value)
  const shown = rows.filter(({ name }) => name.includes(search.trim()))
  return (
    <>
      <Panel title="Global watermark" path="/watermarks" kept={watermarks}>
        {value !== undefined && <Global value={value} rows={rows} />}
      </Panel>
      <Panel title="Partitions" path="/watermarks" kept={watermarks} wide>
        <p class="actions">
          <label>
            Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
          </label>
          <span role="status">
            {shown.length} of {rows.length}
          </span>
        </p>
        <Table
          caption="Watermarks of partitions, the one furthest behind first"
          rows={shown}
          keyOf={({ name }) => name}
          columns={[
            { name: 'Partition', cell: ({ name }) => name },
            { name: 'Watermark', cell: ({ watermarkMs }) => instant(watermarkMs) },
            { name: 'Ahead of the global', right: true, cell: (row) => ahead(row, value?.globalMs) },
            { name: 'Holds it', cell: (row) => holding(row, value?.globalMs ?? null) },
            { name: 'Idle', cell: (row) => idleness(row) },
            { name: 'Alignment', cell: (row) => alignment(row) },
            { name: 'Preview', cell: ({ previewWatermarkMs: at }) => (at === undefined ? '' : instant(at)) },
          ]}
        />
      </Panel>
      <Panel title="Alignment" path="/watermarks" kept={watermarks}>
        {value !== undefined && <Alignment value={value} />}
      </Panel>
    </>
  )
}

function rowsOf({ partitions }: Watermarks): Row[] {
  return Object.entries(partitions)
    .map(([name, each]) => ({ name, ...each, counts: each.previewWatermarkMs ?? each.watermarkMs }))
    .sort((a, b) => (a.counts ?? 0) - (b.counts ?? 0) || compareNames(a.name, b.name))
}

function Global({ value, rows }: { value: Watermarks; rows: readonly Row[] }): JSX.Element {
  const unknown = rows.filter(({ idle, counts }) => !idle && counts === null)
  const holder = rows.find(({ idle, counts }) => !idle && counts !== null)
  const why =
    unknown.length > 0
      ? `${unknown.length} partitions that are not idle have had no record yet: ${listed(unknown)}.`
      : holder === undefined
        ? 'Every partition is idle: it stays where it is.'
        : `${holder.name} is furthest behind and holds it.`
  return (
    <>
      <p class="figures">
        <span>
          <b>{value.globalMs === null ? 'not known yet' : instant(value.globalMs)}</b>
        </span>
        {value.globalMs !== null && <span>{lasting(Date.now() - value.globalMs)} behind the clock</span>}
      </p>
      <p>{why}</p>
    </>
  )
}

function listed(rows: readonly Row[]): string {
  const names = rows.slice(0, 5).map(({ name }) => name)
  return rows.length > 5 ? `${names.join(', ')} …` : names.join(', ')
}

function ahead({ counts }: Row, globalMs: number | null | undefined): string {
  return counts === null || globalMs === null || globalMs === undefined ? '–' : lasting(counts - globalMs)
}

function holding({ idle, counts }: Row, globalMs: number | null): string {
  if (idle) return ''
  if (counts === null) return 'yes: no record yet'
  return counts === globalMs ? 'yes' : ''
}

function idleness({ idle, lastEventTimeMs, idlenessTimeoutMs }: Row): string {
  if (idlenessTimeoutMs === 0) return 'never'
  if (idle) return 'idle'
  return lastEventTimeMs === null ? 'no' : `no, last record ${instant(lastEventTimeMs)}`
}

function alignment({ alignmentGroup, alignmentHeld, driftFromGroupMinMs }: Row): string {
  if (alignmentGroup === null) return ''
  return `${alignmentGroup}${alignmentHeld ? ', held' : ''}, drift ${lasting(driftFromGroupMinMs)}`
}

function Alignment({ value }: { value: Watermarks }): JSX.Element {
  const groups = Object.entries(value.alignmentGroupMins)
  const hold = value.alignmentBinding
  return (
    <>
      {hold !== null && (
        <p class="stale">
          The group {hold.group} stops all dispatch since {instant(hold.sinceMs)}: {hold.partition} is ahead and waits
          for {hold.emptyLaggards.join(', ')}.
        </p>
      )}
      <Table
        caption="Alignment groups"
        rows={groups}
        keyOf={([name]) => name}
        empty="No source is aligned."
        columns={[
          { name: 'Group', cell: ([name]) => name },
          { name: 'Least watermark', cell: ([, at]) => instant(at) },
        ]}
      />
    </>
  )
}
