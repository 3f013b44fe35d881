/** Rows of a store as plain JSON, by a question in words. */
import { EngineError } from '../../base/errors.ts'
import type { Refused, ShownRow, StoreQuestion, StoreRows } from '../../http/data-seam.ts'
import type { Serde } from '../../serde/serde.ts'
import { keyOfText, shownJson, textOfKey } from '../../serde/shown.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { StoreEntry } from '../contract.ts'
import type { PlacedEntry, StorePages } from './store-queries.ts'

const latestMs = 8_640_000_000_000_000

export async function rowsOf(
  stores: ReadonlyMap<string, StoreSpec>,
  read: (name: string) => StorePages,
  name: string,
  question: StoreQuestion,
): Promise<StoreRows | Refused> {
  const spec = stores.get(name)
  if (spec === undefined) {
    const known = [...stores.keys()].sort().join(', ') || 'none'
    return { refused: 404, reason: `there is no store of this name; the application has ${known}` }
  }
  try {
    const asked = spec.kind === 'key-value' ? byKeys(spec, question) : byTimes(spec, question)
    if ('refused' in asked) return asked
    const found = await asked.from(read(name))
    const rows = found.slice(0, question.limit).map((row) => shown(spec, row))
    const after = found[question.limit]
    const next = after !== undefined && 'partition' in after ? cursorOf(spec, after, found[question.limit - 1]) : null
    return { store: name, kind: spec.kind, rows, more: after !== undefined, next }
  } catch (error) {
    if (!EngineError.is(error)) throw error
    if (error.code === 'STORE_UNAVAILABLE') return { refused: 503, reason: error.message }
    if (error.code === 'USAGE') return { refused: 400, reason: error.message }
    throw error
  }
}

type Rows = Array<StoreEntry<unknown, unknown> | PlacedEntry>
type Asked = { readonly from: (store: StorePages) => Promise<Rows> } | Refused

function byKeys({ name, keySerde }: StoreSpec, { key, from, to, limit }: StoreQuestion): Asked {
  const cursor = from === undefined ? undefined : placeOfText(keySerde, from)
  const texts = key === undefined ? [cursor?.text ?? from, to] : [key, key]
  const [first, last] = texts.map((text) => (text === undefined ? { key: undefined } : keyOfText(keySerde, text)))
  if (first === undefined || last === undefined) return noKey(name, keySerde)
  const isOfKey = key === undefined || cursor?.text === textOfKey(keySerde, first.key)
  const partition = cursor !== undefined && isOfKey ? cursor.partition : 0
  return { from: (store) => store.pageFrom(first.key, partition, last.key, limit + 1) }
}

/** The row that a page ends before: its key, and where the page ends within the rows of that key also its partition. */
function cursorOf(
  { keySerde }: StoreSpec,
  { key, partition }: PlacedEntry,
  last: Rows[number] | undefined,
): string | null {
  const text = textOfKey(keySerde, key)
  const isCut = last !== undefined && Buffer.compare(keySerde.serialize(last.key), keySerde.serialize(key)) === 0
  return text === null || !isCut ? text : `${text}@partition:${partition}`
}

/**
 * What `cursorOf` has made; undefined: it is a key alone. A text key that somebody types may end so too: it is taken for
 * a cursor only where what stands before is written just as `next` writes keys.
 */
function placeOfText(
  serde: Serde<unknown>,
  from: string,
): { readonly text: string; readonly partition: number } | undefined {
  const [, text, partition] = /^(.*)@partition:(\d{1,9})$/s.exec(from) ?? []
  if (text === undefined) return undefined
  const key = keyOfText(serde, text)
  return key === undefined || textOfKey(serde, key.key) !== text ? undefined : { text, partition: Number(partition) }
}

function byTimes(spec: StoreSpec, { key: text, from, to, limit }: StoreQuestion): Asked {
  const [first, last] = [instant(from, 0), instant(to, latestMs)]
  if (Number.isNaN(first) || Number.isNaN(last)) {
    const reason = `from and to of the ${spec.kind} store ${spec.name} are instants: ISO 8601, or epoch milliseconds`
    return { refused: 400, reason }
  }
  const key = text === undefined ? undefined : keyOfText(spec.keySerde, text)
  if (text !== undefined && key === undefined) return noKey(spec.name, spec.keySerde)
  if (spec.kind === 'versioned') return ofVersions(spec, key, from ?? to, limit)
  if (key === undefined) return { from: (store) => store.fetchAll(first, last, limit + 1) }
  return { from: (store) => store.fetch(key.key, first, last, limit + 1) }
}

function ofVersions(
  { name }: StoreSpec,
  key: { readonly key: unknown } | undefined,
  bound: string | undefined,
  limit: number,
): Asked {
  if (bound !== undefined) {
    return { refused: 400, reason: `the versioned store ${name} knows no from and to; ask for a key, or for all rows` }
  }
  if (key === undefined) return { from: (store) => store.all(limit + 1) }
  return { from: (store) => store.entriesOf(key.key, limit + 1) }
}

function instant(text: string | undefined, unset: number): number {
  if (text === undefined) return unset
  return /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text)
}

function noKey(store: string, { name }: Serde<unknown>): Refused {
  const reason = `this is no key of the store ${store}, whose keys are of the serde ${name}; write it as JSON, as plain text, or as \`base64:\` and its bytes`
  return { refused: 400, reason }
}

function shown(
  { keySerde, valueSerde }: StoreSpec,
  { key, value, timestamp, start, end, validTo }: Rows[number],
): ShownRow {
  const times = {
    ...(timestamp !== undefined && { timestamp }),
    ...(start !== undefined && { start }),
    ...(end !== undefined && { end }),
    ...(validTo !== undefined && { validTo }),
  }
  return { key: shownJson(keySerde, key), value: shownJson(valueSerde, value), ...times }
}
