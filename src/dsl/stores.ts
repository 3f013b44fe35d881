/** Stores that processors declare. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import type { KeyValueStore, SessionStore, VersionedStore, WindowStore } from '../state/contract.ts'
import { checkOptions, type Names, shownInstead } from '../topology/check-given.ts'
import { invalid, type StoreDefinition } from '../topology/physical.ts'
import type { AnySerde } from './build.ts'
import { ms } from './windows.ts'

const definition: unique symbol = Symbol('millrace.store')
declare const storeType: unique symbol

/** A declared store. `S` is the type that `context.store(…)` returns for it. */
export interface StoreDeclaration<S> {
  /** Its name in the topology, in the changelog and in queries. */
  readonly name: string
  readonly [definition]: StoreDefinition
  readonly [storeType]?: S
}

export const declarations = 'what keyValueStore(…), windowStore(…), sessionStore(…) or versionedStore(…) returns'

/** Undefined where it is none. Types hold nobody who writes JavaScript, nor a copy of the package its handles apart. */
export function definitionOf(store: unknown): StoreDefinition | undefined {
  return (store as Partial<StoreDeclaration<unknown>> | null | undefined)?.[definition]
}

interface Serdes<K, V> {
  /** Default: text as UTF-8, anything else in a form of its own. */
  readonly key?: Serde<K>
  /** Default: JSON. */
  readonly value?: Serde<V>
}

const serdeNames: Names<Serdes<unknown, unknown>> = { key: true, value: true }

function storeDeclaration<S>(
  name: string,
  kind: StoreDefinition['kind'],
  serdes: Serdes<never, never> | undefined,
  more: Partial<StoreDefinition>,
): StoreDeclaration<S> {
  if (typeof name !== 'string')
    throw invalid(`a store has ${shownInstead(name)} for its name; give a text as the first argument`)
  return {
    name,
    [definition]: {
      name,
      kind,
      keySerde: serdes?.key as AnySerde | undefined,
      valueSerde: serdes?.value as AnySerde | undefined,
      timestamped: false,
      changelog: true,
      ...more,
    },
  }
}

/**
 * A store of one value a key, for processors. A row that was not updated for `ttl` of event time is forgotten; by
 * default rows are kept.
 *
 * @example
 * const seen = keyValueStore('seen', { key: serdes.string, value: serdes.number, ttl: '7d' })
 * @throws EngineError `TOPOLOGY_INVALID` when `ttl` is no duration.
 */
export function keyValueStore<K, V>(
  name: string,
  options?: Serdes<K, V> & { readonly ttl?: Duration },
): StoreDeclaration<KeyValueStore<K, V>> {
  checkOptions('keyValueStore', options, { ...serdeNames, ttl: true })
  const ttlMs = options?.ttl === undefined ? undefined : ms(options.ttl, `ttl of ${name}`)
  return storeDeclaration(name, 'key-value', options as never, { ttlMs })
}

/**
 * A store of values by key and the start of their window, for processors. `retention` is how far back it remembers, in
 * event time: a record finds what starts later than the watermark before it less the retention, whatever else is under
 * way. `windowSize` defaults to it.
 *
 * @example
 * const perMinute = { retention: '1h', windowSize: '1m' }
 * const readings = windowStore('readings', { key: serdes.string, value: serdes.number, ...perMinute })
 * @throws EngineError `TOPOLOGY_INVALID` when a duration is malformed.
 */
export function windowStore<K, V>(
  name: string,
  options: Serdes<K, V> & { readonly retention: Duration; readonly windowSize?: Duration },
): StoreDeclaration<WindowStore<K, V>> {
  checkOptions('windowStore', options, { ...serdeNames, retention: true, windowSize: true })
  const retentionMs = ms(options.retention, `retention of ${name}`)
  const windowSizeMs = ms(options.windowSize ?? retentionMs, `windowSize of ${name}`)
  return storeDeclaration(name, 'window', options as never, { retentionMs, windowSizeMs, timestamped: true })
}

/**
 * A store of sessions by key, for processors. `retention` is how far back it remembers, in event time: a record finds
 * what ends later than the watermark before it less the retention, whatever else is under way.
 *
 * @example
 * const visits = sessionStore('visits', { key: serdes.string, value: serdes.number, retention: '1d' })
 * @throws EngineError `TOPOLOGY_INVALID` when `retention` is no duration.
 */
export function sessionStore<K, V>(
  name: string,
  options: Serdes<K, V> & { readonly retention: Duration },
): StoreDeclaration<SessionStore<K, V>> {
  checkOptions('sessionStore', options, { ...serdeNames, retention: true })
  return storeDeclaration(name, 'session', options as never, {
    retentionMs: ms(options.retention, `retention of ${name}`),
  })
}

/**
 * A store that knows what the value of a key was at any time of its history, for processors. `historyRetention` is how
 * far back that goes, in event time.
 *
 * @example
 * const rates = versionedStore('rates', { key: serdes.string, value: serdes.number, historyRetention: '30d' })
 * @throws EngineError `TOPOLOGY_INVALID` when `historyRetention` is no duration.
 */
export function versionedStore<K, V>(
  name: string,
  options: Serdes<K, V> & { readonly historyRetention: Duration },
): StoreDeclaration<VersionedStore<K, V>> {
  checkOptions('versionedStore', options, { ...serdeNames, historyRetention: true })
  return storeDeclaration(name, 'versioned', options as never, {
    retentionMs: ms(options.historyRetention, `historyRetention of ${name}`),
  })
}
