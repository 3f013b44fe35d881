import { clientRows } from './table-clients.ts'
import { engineRows } from './table-engine.ts'
import { haRows } from './table-ha.ts'
import { runtimeRows } from './table-runtime.ts'
import type { ConfigRow, ConfigTable } from './table-types.ts'

export { type ClientSection, clientSections } from './table-clients.ts'
export type { ConfigRow, ConfigTable } from './table-types.ts'

/** Every key the engine knows. The one place to add one; see `docs/config.md`, which is generated from here. */
export const configTable = { ...engineRows, ...haRows, ...clientRows, ...runtimeRows } as const satisfies ConfigTable

export type ConfigKey = keyof typeof configTable

type ValueOf<R extends ConfigRow> =
  | (R extends { readonly nullable: true } ? null : never)
  | (R extends { readonly type: 'boolean' }
      ? boolean
      : R extends { readonly type: 'enum'; readonly values: readonly (infer V)[] }
        ? V
        : R extends { readonly type: 'string' }
          ? string
          : R extends { readonly type: 'list' }
            ? readonly string[]
            : number)

/** Type of a key's value: durations in milliseconds, sizes in bytes, null only where the key may be unset. */
export type ConfigValue<K extends ConfigKey> = ValueOf<(typeof configTable)[K]>

export const configKeys = Object.keys(configTable) as readonly ConfigKey[]

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(configTable, key)
}

/** The row of a key without its literal types, for code that treats all rows alike. */
export function rowOf(key: ConfigKey): ConfigRow {
  return configTable[key]
}
