import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, base, curl, home, pods, Refusal } from '../ask/client.ts'
import { useAsk } from '../ask/live.ts'
import type { Row, StoreRows, Stores } from '../ask/model.ts'
import { bytes, instant, json, number } from '../parts/format.ts'
import { CopyButton, Off, Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

interface StoresProps {
  readonly store: string | null
  /** Is looked up at once. */
  readonly chosenKey: string | null
}

export function StoresPage({ store, chosenKey }: StoresProps): JSX.Element {
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
        {value?.rowsShown === true && (
          <Reader key={`${store} ${chosenKey}`} stores={value} store={store} chosenKey={chosenKey ?? ''} />
        )}
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

interface Found {
  readonly path: string
  /** Who had it. */
  readonly at: string
  readonly answer: StoreRows
}

/** Another process may have the key: it is asked where this page may, else it is named with a link. */
async function found(path: string, at = base): Promise<Found> {
  try {
    return { path, at, answer: await ask<StoreRows>(path, 'GET', undefined, at) }
  } catch (error) {
    const owner = error instanceof Refusal ? error.address : undefined
    if (owner === undefined || at !== base || ![home, ...pods].includes(owner)) throw error
    // Where that one is silent or wants a token, what this one said still leads there.
    return await found(path, owner).catch(() => {
      throw error
    })
  }
}

interface ReaderProps {
  readonly stores: Stores
  readonly store: string | null
  readonly chosenKey: string
}

function Reader({ stores, store, chosenKey }: ReaderProps): JSX.Element {
  const [name, setName] = useState(store ?? stores.stores[0]?.store ?? '')
  const [asked, setAsked] = useState({ key: chosenKey, from: '', to: '' })
  const [shown, setShown] = useState<Found | undefined>(undefined)
  const [fault, setFault] = useState<Error | undefined>(undefined)
  const turn = useRef(0)
  const load = async (from: string): Promise<void> => {
    const query = new URLSearchParams({ limit: '50' })
    if (asked.key !== '') query.set('key', asked.key)
    if (from !== '') query.set('from', from)
    if (asked.to !== '') query.set('to', asked.to)
    const path = `/stores/${encodeURIComponent(name)}?${query}`
    // An answer that comes late is not put over a newer one.
    const mine = ++turn.current
    try {
      const next = await found(path)
      if (mine !== turn.current) return
      setShown(next)
      setFault(undefined)
    } catch (error) {
      if (mine === turn.current) setFault(error instanceof Error ? error : new Error(String(error)))
    }
  }
  useEffect(() => {
    if (chosenKey !== '') void load('')
  }, [])
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
        {shown !== undefined && (
          <CopyButton label="Copy rows as curl" text={curl(shown.path, 'GET', undefined, shown.at)}>
            curl
          </CopyButton>
        )}
      </form>
      <p class="calm">
        A key is JSON, or else plain text. From and to are keys; of windows and sessions they are instants.
      </p>
      {fault !== undefined && (
        <p class="stale" role="alert">
          {fault.message}{' '}
          {fault instanceof Refusal && fault.address !== undefined && (
            <a href={`${fault.address}/console/#/stores?${new URLSearchParams({ store: name, key: asked.key })}`}>
              Look there
            </a>
          )}
        </p>
      )}
      {shown !== undefined && shown.at !== base && <p class="calm">{shown.at} has this key.</p>}
      {shown !== undefined && <Rows answer={shown.answer} next={(from) => void load(from)} />}
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
