/** Checked by the compiler alone: what a configuration may say, and what it may not. */
import { type ConfigInput, defineApp } from '../../src/index.ts'
import type { ConfigKey, ConfigValue } from '../../src/config/table.ts'
import type { RuntimeOptions } from '../../src/runtime/index.ts'
import type { DriverOptions } from '../../src/testing/index.ts'

type Values = { readonly [K in ConfigKey]: ConfigValue<K> }

const takes = (_config: ConfigInput): void => undefined
const build = (): void => undefined

// By dotted key, nested, or both; and what the parser takes for each type.
takes({ 'engine.lanes.count': 2, 'commit-barrier.interval-ms': '50ms', 'lane.queue-bytes': '2MiB' })
takes({ engine: { lanes: { count: 2 }, 'state.store': 'lmdb', 'state.dir': './state' }, 'engine.processing': {} })
takes({ 'engine.lanes.count': '2', 'engine.processing.max-task-idle-ms': '-1', 'runtime.http.enabled': 'false' })
takes({ 'engine.lanes.count': null, 'ha.mode': 'off', 'errors.dead-letter-topic': undefined })
takes({ 'ha.mode': false, 'log.levels': 'engine=debug', runtime: null })
takes({ 'runtime.http.allowed-hosts': ['a', 'b'] as const, 'runtime.http.console.pods': 'http://a,http://b' })
takes({ 'engine.instance-id': 5, 'broker.sasl.password': null })
// Options that other clients have.
takes({ 'consumer.client.rack': 'a', consumer: { isolation: { level: 'read_committed' }, 'max.poll.records': 10 } })
takes({ 'producer.linger.ms': 5, 'admin.retries': 3, admin: { retries: 3 }, 'schema-registry.basic.auth': 'x' })
takes({ 'broker.sasl.jaas.config': 'x', broker: { security: { protocol: 'SSL' }, ssl: { ca: 'x' }, 'sasl.jaas': 1 } })
// What comes out goes in, for every key.
takes({} as Values)
export const every: { readonly [K in ConfigKey]-?: unknown } = {} as Required<ConfigInput>
// Whoever reads it from elsewhere is held by the loader.
takes({} as Readonly<Record<string, unknown>>)

// @ts-expect-error there is no such key
takes({ 'errors.procesing': 'skip' })
// @ts-expect-error nor nested
takes({ errors: { procesing: 'skip' } })
// @ts-expect-error nor partly nested
takes({ runtime: { 'http.prot': 80 } })
// @ts-expect-error nor of the broker
takes({ 'broker.bootstrap.servers': 'localhost:9092' })
// @ts-expect-error nor of the broker, nested
takes({ broker: { 'bootstrap.servers': 'localhost:9092' } })
// @ts-expect-error none of its values
takes({ 'errors.processing': 'skipp' })
// @ts-expect-error none of its values, nested
takes({ errors: { processing: 'skipp' } })
// @ts-expect-error a number is wanted
takes({ 'engine.lanes.count': 'two' })
// @ts-expect-error a number is wanted in an open section, too
takes({ 'consumer.max.poll.records': 'many' })
// @ts-expect-error nested as well
takes({ consumer: { max: { poll: { records: 'many' } } } })
// @ts-expect-error it is true or false
takes({ 'runtime.http.enabled': 'yes' })
// @ts-expect-error it cannot be unset
takes({ 'runtime.http.port': null })
// @ts-expect-error a duration is no list
takes({ 'commit-barrier.interval-ms': ['1s'] })
// @ts-expect-error only a value may be false that can be off
takes({ 'errors.decoding': false })

// Wherever a configuration is given.
// @ts-expect-error there is no such key
defineApp({ applicationId: 'a', build, config: { 'errors.procesing': 'skip' } })
// @ts-expect-error there is no such key
export const runtime: RuntimeOptions = { application: './app.ts', config: { 'engine.lane.count': 2 } }
// @ts-expect-error there is no such key
export const driver: DriverOptions = { config: { 'errors.procesing': 'skip' } }
// @ts-expect-error there is no such key
export const of: DriverOptions = { applications: { a: { config: { 'errors.procesing': 'skip' } } } }
