/** What all handles of one topology share, and how serdes and stores follow from what the user wrote. */
import type { Serde } from '../serde/serde.ts'
import { sessionWindowed, windowed } from '../serde/windowed.ts'
import type { StoreKind } from '../state/contract.ts'
import { internalKeySerde, plainKeySerde, plainValueSerde } from '../topology/serdes/default-serdes.ts'
import { checkOptions, notFunction, shownInstead } from '../topology/check-given.ts'
import { Graph } from '../topology/graph.ts'
import { nameFault } from '../topology/names.ts'
import type { WindowSpec } from '../topology/operator-spec.ts'
import type { StoreDefinition } from '../topology/physical.ts'
import { invalid } from '../topology/physical.ts'
import { type StoreSettings, storeOptions } from './types.ts'
import { ms } from './windows.ts'

export type AnySerde = Serde<unknown>

/** What is known of the keys on an edge. */
export interface KeyInfo {
  readonly serde: AnySerde | undefined
  /** Set where keys are windowed: makes the windowed serde from the inner one. */
  readonly windowed: { readonly inner: AnySerde | undefined; readonly wrap: (inner: AnySerde) => AnySerde } | undefined
}

export function keyInfo(serde: AnySerde | undefined): KeyInfo {
  return { serde, windowed: undefined }
}

export function windowedKey(inner: AnySerde | undefined, window: WindowSpec): KeyInfo {
  const wrap = (serde: AnySerde): AnySerde => {
    if (window.type === 'session') return sessionWindowed(serde) as AnySerde
    return windowed(serde, windowSize(window)) as AnySerde
  }
  return { serde: undefined, windowed: { inner, wrap } }
}

export function windowSize(window: WindowSpec): number {
  switch (window.type) {
    case 'time':
      return window.sizeMs
    case 'sliding':
      return window.differenceMs
    case 'session':
      return window.gapMs
    default:
      return Number.MAX_SAFE_INTEGER
  }
}

/** A serde as it is for one topic, where that makes a difference to it. */
export function serdeFor(serde: AnySerde, topic: string | undefined, part: 'key' | 'value'): AnySerde {
  return topic === undefined ? serde : (serde.forTopic?.(topic, part) ?? serde)
}

/** The serde for topics of the user's. */
export function topicKeySerde(info: KeyInfo, topic: string | undefined): AnySerde {
  if (!info.windowed) return serdeFor(info.serde ?? plainKeySerde, topic, 'key')
  return info.windowed.wrap(serdeFor(info.windowed.inner ?? plainKeySerde, topic, 'key'))
}

/** The serde for stores and hand-offs. Every key has to come back from it as what it was. */
export function ownKeySerde(info: KeyInfo): AnySerde {
  return info.windowed ? info.windowed.wrap(info.windowed.inner ?? internalKeySerde) : (info.serde ?? internalKeySerde)
}

/** Serde of the part of a windowed key that chooses the partition. */
export function partitionSerde(info: KeyInfo, own: boolean): AnySerde | undefined {
  if (!info.windowed) return undefined
  return info.windowed.inner ?? (own ? internalKeySerde : plainKeySerde)
}

export function valueSerdeOr(serde: AnySerde | undefined): AnySerde {
  return serde ?? plainValueSerde
}

/** A topology while it is being built. */
export class Build {
  readonly graph = new Graph()
  readonly #stores = new Map<string, StoreDefinition>()
  /** Global tables and stores by name. */
  readonly globals = new Set<string>()

  get names() {
    return this.graph.names
  }

  /** A store of the user's own, to be used by processors. */
  register(store: StoreDefinition): void {
    const known = this.#stores.get(store.name)
    if (known === store) return
    if (known !== undefined) throw invalid(`two stores are named ${store.name}; give one of them another name`)
    this.#stores.set(store.name, store)
  }

  registered(name: string): StoreDefinition | undefined {
    return this.#stores.get(name)
  }
}

export function settingsOf<K, V>(method: string, store: string | StoreSettings<K, V> | undefined): StoreSettings<K, V> {
  if (typeof store === 'string') return { name: store }
  if (store !== undefined && (typeof store !== 'object' || store === null))
    throw invalid(`a store is ${shownInstead(store)}; give its name, or an object: { store: { name: '…' } }`)
  checkOptions(`the store of ${method}`, store, storeOptions)
  return store ?? {}
}

export type TableEmit = 'on-update' | 'per-commit'

/** @throws EngineError `TOPOLOGY_INVALID` for what is none of the ways in which a table tells its rows. */
export function checkEmit(emit: unknown, ways: readonly string[]): void {
  if (emit === undefined || ways.includes(emit as string)) return
  throw invalid(`emit is ${shownInstead(emit)}; give one of ${ways.map((way) => `'${way}'`).join(', ')}`)
}

/** Only rows that are kept can be told at a commit. */
export function refuseUnkept(name: string, options: { readonly emit?: TableEmit } | undefined): void {
  if (options?.emit !== 'per-commit') return
  throw invalid(`${name} keeps no rows, so it cannot tell them once per commit; give it a store: { store: 'name' }`)
}

export interface StorePlan {
  readonly name: string
  readonly key: KeyInfo
  readonly valueSerde: AnySerde | undefined
  readonly settings: StoreSettings
  readonly window?: WindowSpec
  readonly sourceTopic?: string
  readonly changelog?: boolean
  /** Undefined: as the application says. */
  readonly emit: TableEmit | undefined
}

/** The store of a table or an aggregate. */
export function tableStore(plan: StorePlan): StoreDefinition {
  const { settings, window } = plan
  checkEmit(plan.emit, ['on-update', 'per-commit'])
  const kind: StoreKind = window
    ? window.type === 'session'
      ? 'session'
      : 'window'
    : settings.type === 'versioned'
      ? 'versioned'
      : 'key-value'
  const keySerde = (settings.key as AnySerde | undefined) ?? ownKeySerde(plan.key)
  const valueSerde = (settings.value as AnySerde | undefined) ?? plan.valueSerde
  const { name, changelog = true, emit, sourceTopic } = plan
  const common = { name, kind, keySerde, valueSerde, changelog, emit, sourceTopic }
  if (kind === 'versioned') {
    if (settings.historyRetention === undefined)
      throw invalid(`the versioned store ${plan.name} needs historyRetention, the time it looks back`)
    return {
      ...common,
      timestamped: false,
      retentionMs: ms(settings.historyRetention, `historyRetention of ${plan.name}`),
    }
  }
  const ttlMs = settings.ttl === undefined ? undefined : ms(settings.ttl, `ttl of ${plan.name}`)
  if (!window) return { ...common, timestamped: true, ttlMs }
  return {
    ...common,
    timestamped: kind === 'window',
    windowSizeMs: windowSize(window),
    windowAdvanceMs: windowAdvance(window),
    retentionMs: windowRetention(plan, window),
    ttlMs,
    tumbling: window.type === 'time' && window.sizeMs === window.advanceMs,
  }
}

/** How far apart windows begin; undefined where there is no such thing. */
function windowAdvance(window: WindowSpec): number | undefined {
  if (window.type === 'time') return window.advanceMs
  return window.type === 'sliding' ? 0 : undefined
}

/**
 * How long a window store keeps a window: at least as long as the window may change. Endless windows are never
 * forgotten.
 */
function windowRetention(plan: StorePlan, window: WindowSpec): number | undefined {
  if (window.type === 'unlimited') return undefined
  const base = window.type === 'sliding' ? 2 * window.differenceMs : windowSize(window)
  const asked = base + window.graceMs
  // A store forgets rows as old as its retention, and the end of a sliding or session window belongs to the window.
  const least = window.type === 'time' ? asked : asked + 1
  if (plan.settings.retention === undefined) return least
  const retention = ms(plan.settings.retention, `retention of ${plan.name}`)
  if (retention < asked) {
    throw invalid(
      `the retention of ${plan.name} is ${retention} ms, shorter than its windows with their grace (${asked} ms); make it at least that`,
    )
  }
  return Math.max(retention, least)
}

export function checkTopic(topic: unknown): void {
  if (typeof topic === 'string' && nameFault(topic) === undefined) return
  throw invalid(`${JSON.stringify(topic)} is not the name of a topic: 1 to 249 letters, digits, ".", "_" and "-"`)
}

/** Left out it would be a reduce, whose first value is the first aggregate. */
export function firstOf<A>(init: () => A): () => A {
  if (typeof init === 'function') return init
  throw notFunction('an aggregate', 'the function that makes the first one', init)
}
