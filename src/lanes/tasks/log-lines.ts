/** The log of the application's functions: lines as plain data, and no more of them than a log can take. */
import type { Clock } from '../../base/clock.ts'
import { type LogFields, type LogLevel, type LogPort, logLevels } from '../../base/logger.ts'

/** A line on its way to the log. */
export interface FunctionLine {
  readonly level: LogLevel
  readonly message: string
  readonly fields: LogFields
}

/** A function that logs every record would fill memory and disk: no lane writes more in a second. */
export const linesPerSecond = 1000

export class LogLines implements LogPort {
  readonly #least: number
  readonly #lane: number
  readonly #clock: Clock
  readonly #send: (line: FunctionLine) => void
  readonly #perSecond: number
  #second = Number.NaN
  #written = 0

  constructor(
    least: LogLevel,
    lane: number,
    clock: Clock,
    send: (line: FunctionLine) => void,
    perSecond = linesPerSecond,
  ) {
    this.#perSecond = perSecond
    this.#least = logLevels.indexOf(least)
    this.#lane = lane
    this.#clock = clock
    this.#send = send
  }

  isEnabled(level: LogLevel): boolean {
    return logLevels.indexOf(level) >= this.#least
  }

  write(level: LogLevel, where: LogFields, fields: LogFields | Error | undefined, message: string | undefined): void {
    const second = Math.floor(this.#clock.now() / 1000)
    if (second !== this.#second) this.#begin(second)
    if (++this.#written > this.#perSecond) return
    const own = fields instanceof Error ? { err: fields } : fields
    const said = message ?? (fields instanceof Error ? fields.message : '')
    this.#send({ level, message: said, fields: { ...plain(own ?? {}), ...where, lane: this.#lane } })
  }

  #begin(second: number): void {
    const left = this.#written - this.#perSecond
    this.#second = second
    this.#written = 0
    if (left <= 0) return
    const message = `${left} lines of the application's functions were left out: a lane writes at most ${this.#perSecond} in a second`
    this.#send({ level: 'warn', message, fields: { lane: this.#lane } })
  }
}

/** What another thread can be given, and JSON can say. */
function plain(fields: LogFields): LogFields {
  try {
    return JSON.parse(JSON.stringify(fields, readable)) as LogFields
  } catch (error) {
    return { unreadable: `the fields of this line cannot be written: ${(error as Error).message}` }
  }
}

function readable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (!(value instanceof Error)) return value
  const { name, message, stack, cause } = value
  const code = (value as { code?: unknown }).code
  return { type: name, message, stack, ...(code !== undefined && { code }), ...(cause !== undefined && { cause }) }
}
