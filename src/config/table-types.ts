/** What a row of the configuration table says. Parsing, checking, rendering, masking and the reference page follow it. */
interface RowBase {
  /** One or two sentences for the reference page: purpose, and what the value does. */
  readonly doc: string
  /** `application`: all processes of one application must agree. `pod` (default): each process for itself. */
  readonly scope?: 'pod' | 'application'
  /** The value never appears in any rendering. */
  readonly secret?: true
  /** The key that names a file from which this value is read at start (a mounted secret, for instance). */
  readonly fromFile?: string
  /** May be left unset or set to null; the default is then what `doc` says. */
  readonly nullable?: true
  /** Accepted so that existing configurations keep working; nothing reads it. */
  readonly acceptedIgnored?: true
}
interface NumberRow extends RowBase {
  readonly type: 'int' | 'number'
  readonly default: number | null
  readonly min?: number
  readonly max?: number
}
/** Durations are held in milliseconds; written as `10s`, `5m`, `1h30m`, ISO 8601 or a number of milliseconds. */
interface DurationRow extends RowBase {
  readonly type: 'duration'
  readonly default: number | null
  readonly min?: number
  readonly max?: number
}
/** Sizes are held in bytes; written as `64MiB`, `8KiB` or a number of bytes. */
interface BytesRow extends RowBase {
  readonly type: 'bytes'
  readonly default: number | null
  readonly min?: number
  readonly max?: number
}
interface BooleanRow extends RowBase {
  readonly type: 'boolean'
  readonly default: boolean | null
}
interface StringRow extends RowBase {
  readonly type: 'string'
  readonly default: string | null
  /** Regular expression the whole value must match, with `patternDoc` as its meaning in words. */
  readonly pattern?: string
  readonly patternDoc?: string
}
interface EnumRow extends RowBase {
  readonly type: 'enum'
  readonly default: string | null
  readonly values: readonly string[]
}
/** A YAML list, or text with commas. */
interface ListRow extends RowBase {
  readonly type: 'list'
  readonly default: readonly string[]
}

export type ConfigRow = NumberRow | DurationRow | BytesRow | BooleanRow | StringRow | EnumRow | ListRow
export type ConfigTable = Readonly<Record<string, ConfigRow>>
