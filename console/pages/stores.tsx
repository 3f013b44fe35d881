import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from '../ask/client.ts'
import { useAsk } from '../ask/live.ts'
import type { Row, StoreRows, Stores } from '../ask/model.ts'
import { bytes, instant, json, number } from '../parts/format.ts'
import { CopyButton, Off, Panel } from '../parts/panel.tsx'
import { curl } from '../ask/client.ts'
import { Table } from '../parts/table.tsx'

export function StoresPage({ store }: { store: string | null }): JSX.Element {
  const stores = useAsk<Stores>('/stores')
  const { value } = stores
  return (
    <>
      <Panel title="Stores" path="/stores" kept={stores} wide>
        <Table
          caption="State stores"
          rows={value?.stores ?? []}
          keyOf={(row) => row.store}
          empty="The application has no stores."
          columns={[
            {
              name: 'Store',
              cell: (row) => <a href={`#/stores?store=${encodeURIComponent(row.store)}`}>{row.store}</a>,
            },
            { name: 'Kind', cell: ({ kind, global }) => (global ? `${kind}, global` : kind) },
            { name: 'Rows', right: true, cell: ({ rows }) => number(rows) },
            { name: 'Bytes', right: true, cell: (row) => bytes(row.bytes) },
            { name: 'Reads', right: true, cell: ({ reads }) => number(reads) },
            { name: 'Writes', right: true, cell: ({ writes }) => number(writes) },
            {
              name: 'Changelog',
              cell: ({ changelog, changelogTopic }) => changelogTopic ?? (changelog ? 'yes' : 'none'),
            },
            { name: 'Restore', cell: ({ restore }) => progressOf(restore) },
          ]}
        />
      </Panel>
      <Panel title="Rows" wide>
        {value !== undefined && !value.rowsShown && (
          <Off what="Rows are not shown: they are the application's data." path="/stores/" />
        )}
        {value?.rowsShown === true && <Reader key={store} stores={value} store={store} />}
      </Panel>
    </>
  )
}

function progressOf(restore: Stores['stores'][number]['restore']): string {
  if (restore.length === 0) return 'done'
  const [done, left] = restore.reduce(
    ([a, b], { restoredRecords, remainingRecords }) => [a + restoredRecords, b + remainingRecords],
    [0, 0],
  )
  const percent = done + left === 0 ? 0 : Math.floor((done / (done + left)) * 100)
  return `${percent} %, ${number(left)} records left`
}

function Reader({ stores, store }: { stores: Stores; store: string | null }): JSX.Element {
  const [name, setName] = useState(store ?? stores.stores[0]?.store ?? '')
  const [asked, setAsked] = useState({ key: '', from: '', to: '' })
  const [found, setFound] = useState<{ path: string; answer: StoreRows } | undefined>(undefined)
  const [fault, setFault] = useState('')
  const load = async (from: string): Promise<void> => {
    const query = new URLSearchParams({ limit: '50' })
    if (asked.key !== '') query.set('key', asked.key)
    if (from !== '') query.set('from', from)
    if (asked.to !== '') query.set('to', asked.to)
    const path = `/stores/${encodeURIComponent(name)}?${query}`
    try {
      setFound({ path, answer: await ask<StoreRows>(path) })
      setFault('')
    } catch (error) {
      setFault(error instanceof Error ? error.message : String(error))
    }
  }
  const field = (part: 'key' | 'from' | 'to', label: string): JSX.Element => (
    <label>
      {label}{' '}
      <input value={asked[part]} onInput={(event) => setAsked({ ...asked, [part]: event.currentTarget.value })} />
    </label>
  )
  return (
    <>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault()
          void load(asked.from)
        }}
      >
        <label>
          Store{' '}
          <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
            {stores.stores.map((each) => (
              <option key={each.store} value={each.store}>
                {each.store}
              </option>
            ))}
          </select>
        </label>
        {field('key', 'Key')}
        {field('from', 'From')}
        {field('to', 'To')}
        <button type="submit">Read</button>
        {found !== undefined && (
          <CopyButton label="Copy rows as curl" text={curl(found.path)}>
            curl
          </CopyButton>
        )}
      </form>
      <p class="calm">
        A key is JSON, or else plain text. From and to are keys; of windows and sessions they are instants.
      </p>
      {fault !== '' && (
        <p class="stale" role="alert">
          {fault}
        </p>
      )}
      {found !== undefined && <Rows answer={found.answer} next={(from) => void load(from)} />}
    </>
  )
}

function Rows({ answer, next }: { answer: StoreRows; next: (from: string) => void }): JSX.Element {
  const after = answer.next
  return (
    <>
      <Table
        caption="Rows"
        rows={answer.rows}
        keyOf={(row: Row) => JSON.stringify([row.key, row.start, row.timestamp])}
        empty="There is no such row."
        columns={[
          { name: 'Key', cell: ({ key }) => <code>{json(key)}</code> },
          { name: 'Value', cell: ({ value }) => <code>{json(value)}</code> },
          { name: 'Event time', cell: ({ timestamp }) => instant(timestamp) },
          {
            name: 'Window',
            cell: ({ start, end }) => (start === undefined ? '' : `${instant(start)} to ${instant(end)}`),
          },
        ]}
      />
      {after !== null && (
        <button type="button" onClick={() => next(after)}>
          Next page
        </button>
      )}
      {after === null && answer.more && <p class="calm">There are more rows: narrow from and to.</p>}
    </>
  )
}
