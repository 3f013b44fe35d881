import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useAsk } from '../ask/live.ts'
import { json } from '../parts/format.ts'
import { Off, Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

type Entry = readonly [key: string, value: unknown]

export function ConfigPage(): JSX.Element {
  const config = useAsk<Readonly<Record<string, unknown>>>('/config', 30_000)
  const sources = useAsk<{ readonly sources: Readonly<Record<string, string>> }>('/config/sources', 30_000).value
    ?.sources
  const [search, setSearch] = useState('')
  const [isGivenOnly, setGivenOnly] = useState(false)
  if (config.refusal?.status === 404) {
    return (
      <Panel title="Configuration" path="/config">
        <Off what="The configuration is not shown." path="/config" />
      </Panel>
    )
  }
  const wanted = search.trim().toLowerCase()
  const entries = config.value === undefined ? [] : leavesOf(config.value)
  const from = (key: string): string => sources?.[key] ?? ''
  const shown = entries.filter(([key, value]) => {
    if (isGivenOnly && from(key) === 'default') return false
    return `${key} ${json(value)} ${from(key)}`.toLowerCase().includes(wanted)
  })
  return (
    <Panel title="Configuration" path="/config" kept={config} wide>
      <p class="actions">
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label>
          <input
            type="checkbox"
            checked={isGivenOnly}
            onChange={(event) => setGivenOnly(event.currentTarget.checked)}
          />{' '}
          Without defaults
        </label>
        <span role="status">
          {shown.length} of {entries.length}
        </span>
      </p>
      <Table
        caption="Configuration in force"
        rows={shown}
        keyOf={([key]) => key}
        columns={[
          { name: 'Key', cell: ([key]) => <code>{key}</code> },
          { name: 'Value', cell: ([, value]) => shownValue(value) },
          { name: 'From', cell: ([key]) => from(key) },
        ]}
      />
    </Panel>
  )
}

function leavesOf(tree: Readonly<Record<string, unknown>>, path = ''): Entry[] {
  return Object.entries(tree).flatMap(([name, value]): Entry[] => {
    const key = path === '' ? name : `${path}.${name}`
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isTree ? leavesOf(value as Readonly<Record<string, unknown>>, key) : [[key, value]]
  })
}

function shownValue(value: unknown): JSX.Element {
  if (value === null) return <span class="calm">not set</span>
  if (value === '******') return <span class="calm">secret</span>
  return <code>{json(value)}</code>
}
