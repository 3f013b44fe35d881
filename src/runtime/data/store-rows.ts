/** Rows of a store as plain JSON, by a question in words. */
import { EngineError } from '../../base/errors.ts'
import type { Refused, ShownRow, StoreQuestion, StoreRows } from '../../http/data-seam.ts'
import type { Serde } from '../../serde/serde.ts'
import { keyOfText, shownJson, textOfKey } from '../../serde/shown.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { StoreEntry, StoreReader } from '../contract.ts'

const latestMs = 8_640_000_000_000_000

export async function rowsOf(
  stores: ReadonlyMap<string, StoreSpec>,
  read: (name: string) => StoreReader<unknown, unknown>,
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
    const next = after !== undefined && spec.kind === 'key-value' ? textOfKey(spec.keySerde, after.key) : null
    return { store: name, kind: spec.kind, rows, more: after !== undefined, next }
  } catch (error) {
    if (!EngineError.is(error)) throw error
    if (error.code === 'STORE_UNAVAILABLE') return { refused: 503, reason: error.message }
    if (error.code === 'USAGE') return { refused: 400, reason: error.message }
    throw error
  }
}

type Rows = Array<StoreEntry<unknown, unknown>>
type Asked = { readonly from: (store: StoreReader<unknown, unknown>) => Promise<Rows> } | Refused

function byKeys({ name, keySerde }: StoreSpec, { key, from, to, limit }: StoreQuestion): Asked {
  const texts = key === undefined ? [from, to] : [key, key]
  const [first, last] = texts.map((text) => (text === undefined ? { key: undefined } : keyOfText(keySerde, text)))
  if (first === undefined || last === undefined) return noKey(name, keySerde)
  return { from: (store) => store.range(first.key, last.key, limit + 1) }
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
  return {
    from: async (store) => {
      const value = await store.get(key.key)
      return value === undefined ? [] : [{ key: key.key, value }]
    },
  }
}

function instant(text: string | undefined, unset: number): number {
  if (text === undefined) return unset
  return /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text)
}

function noKey(store: string, { name }: Serde<unknown>): Refused {
  const reason = `this is no key of the store ${store}, whose keys are of the serde ${name}; write it as JSON, as plain text, or as \`base64:\` and its bytes`
  return { refused: 400, reason }
}

function shown({ keySerde, valueSerde }: StoreSpec, { key, value, ...times }: Rows[number]): ShownRow {
  return { key: shownJson(keySerde, key), value: shownJson(valueSerde, value), ...times }
}
