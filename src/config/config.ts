import { mask, maskText, maskValue } from './mask.ts'
import type { PlainValue } from './parse-value.ts'
import { type ClientSection, type ConfigKey, type ConfigValue, configKeys, configTable, rowOf } from './table.ts'

export type ConfigSource = 'default' | 'application' | 'file' | 'environment' | 'command line' | 'secret file'

/** Configuration as plain data: what is sent to a worker thread. Holds secrets in clear; never log it. */
export interface PlainConfig {
  /** Value of every key of the table. */
  readonly values: Readonly<Record<string, PlainValue>>
  /** Client options without a row, by whole dotted key. */
  readonly extra: Readonly<Record<string, unknown>>
  readonly sources: Readonly<Record<string, ConfigSource>>
  /** Texts that must not appear anywhere. */
  readonly secrets: readonly string[]
  readonly warnings: readonly string[]
}

/** A nested map, as `/config` shows it. */
export interface NestedConfig {
  readonly [name: string]: unknown
}

/** Below this length a secret is not looked for inside other text: it would match by chance. */
const shortestSoughtSecret = 6

/** The configuration in force: read-only, complete, checked. Made by `loadConfig`. */
export class Config {
  readonly #plain: PlainConfig
  readonly #soughtSecrets: readonly string[]

  private constructor(plain: PlainConfig) {
    this.#plain = plain
    this.#soughtSecrets = plain.secrets
      .filter((secret) => secret.length >= shortestSoughtSecret)
      .toSorted((a, b) => b.length - a.length)
  }

  static fromPlain(plain: PlainConfig): Config {
    return new Config(plain)
  }

  /** Structured-cloneable; `Config.fromPlain` turns it back. Secrets are in clear. */
  plain(): PlainConfig {
    return this.#plain
  }

  /** Value in force: durations in milliseconds, sizes in bytes, null where unset. */
  get<K extends ConfigKey>(key: K): ConfigValue<K> {
    return this.#plain.values[key] as ConfigValue<K>
  }

  source(key: string): ConfigSource {
    return this.#plain.sources[key] ?? 'default'
  }

  /** Of every key that is shown, by its whole dotted name. */
  allSources(): Readonly<Record<string, ConfigSource>> {
    return Object.fromEntries(this.#entries().map(([key]) => [key, this.source(key)]))
  }

  /** True where any source other than the table gave the value. */
  isSet(key: ConfigKey): boolean {
    return this.source(key) !== 'default'
  }

  /** What is worth a warning at start, in sentences without secrets. */
  get warnings(): readonly string[] {
    return this.#plain.warnings
  }

  /**
   * Client options below a prefix, keyed by what follows it: rows of the table that are not null, and everything else
   * that was given. Values of options without a row are as they were given.
   */
  section(prefix: ClientSection): Readonly<Record<string, unknown>> {
    const out: Record<string, unknown> = {}
    for (const key of configKeys) {
      const value = this.#plain.values[key]
      if (key.startsWith(prefix) && value !== null) out[key.slice(prefix.length)] = value
    }
    for (const [key, value] of Object.entries(this.#plain.extra)) {
      if (key.startsWith(prefix)) out[key.slice(prefix.length)] = value
    }
    return out
  }

  /** Everything as a nested map, secrets in clear. To be shown it takes `toNestedMasked`. */
  toNested(): NestedConfig {
    return nest(this.#entries())
  }

  /** Everything as a nested map with every secret replaced by `******`: by key, by where it came from, by its look. */
  toNestedMasked(): NestedConfig {
    const isKnown = (text: string) => this.#soughtSecrets.some((secret) => text.includes(secret))
    return nest(
      this.#entries().map(([key, value]) => {
        const isSecret = Object.hasOwn(configTable, key) && rowOf(key as ConfigKey).secret === true
        return [key, isSecret ? (value === null ? null : mask) : maskValue(key, value, isKnown)]
      }),
    )
  }

  /** Free text fit for logs and errors: `maskText`, and every secret of this configuration by its very value. */
  maskText(text: string): string {
    let masked = text
    for (const secret of this.#soughtSecrets) masked = masked.replaceAll(secret, mask)
    return maskText(masked)
  }

  toJSON(): NestedConfig {
    return this.toNestedMasked()
  }

  toString(): string {
    return JSON.stringify(this.toNestedMasked())
  }

  [Symbol.for('nodejs.util.inspect.custom')](): NestedConfig {
    return this.toNestedMasked()
  }

  #entries(): Array<[string, unknown]> {
    const known: Array<[string, unknown]> = configKeys.map((key) => [key, this.#plain.values[key]])
    return [...known, ...Object.entries(this.#plain.extra)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  }
}

/** Where a key's path is barred by a scalar (`ssl` and `ssl.ca` both given), the rest of the key stays dotted. */
function nest(entries: ReadonlyArray<readonly [string, unknown]>): NestedConfig {
  const root: Record<string, unknown> = {}
  const branches = new Set<unknown>([root])
  for (const [key, value] of entries) {
    const segments = key.split('.')
    let at = root
    let depth = 0
    for (; depth < segments.length - 1; depth++) {
      const segment = segments[depth] as string
      const next = at[segment]
      if (next === undefined) {
        const branch = {}
        branches.add(branch)
        at[segment] = branch
        at = branch
      } else if (branches.has(next)) {
        at = next as Record<string, unknown>
      } else break
    }
    at[segments.slice(depth).join('.')] = value
  }
  return root
}
