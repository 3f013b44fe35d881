/** What the application's functions write to the log with. Its shape is that of pino and its likes. */
import { messageOf } from './errors.ts'

/** In growing gravity. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** How grave a line of the log is. */
export type LogLevel = (typeof logLevels)[number]

/** Who writes lines to the log: what `log.levels` may name. */
export const logComponents: readonly string[] = [
  'config',
  'topology',
  'engine',
  'ha',
  'http',
  'metrics',
  'license',
  'schema-registry',
  'diagnosis',
  'app',
  'cli',
  'feed',
  'print',
]

/** Details of a line of the log. An `Error` becomes its name, message and stack. */
export type LogFields = Readonly<Record<string, unknown>>

/** One level of a logger: a sentence, or details and a sentence. */
export interface LogMethod {
  (message: string): void
  (fields: LogFields | Error, message?: string): void
}

/**
 * Writes lines to the log of the running application, under the component `app`. Each line says which node wrote it, and for
 * which record: `topic`, `partition`, `offset`.
 */
export interface Logger {
  /** For whoever looks for a fault; not written by default. */
  readonly debug: LogMethod
  /** What happened. */
  readonly info: LogMethod
  /** What somebody should look at. */
  readonly warn: LogMethod
  /** What went wrong. */
  readonly error: LogMethod
  /** Whether lines of this level are written: for details that are costly to make. */
  isLevelEnabled(level: LogLevel): boolean
  /** A logger whose lines have these fields too. Make it once, in a factory: it costs an object. */
  child(fields: LogFields): Logger
}

/** Where a line of a function goes. `where`: the fields that say which node and record. */
export interface LogPort {
  isEnabled(level: LogLevel): boolean
  write(level: LogLevel, where: LogFields, fields: LogFields | Error | undefined, message: string | undefined): void
}

/** Asks `where` only for lines that are written. */
export function loggerOf(port: LogPort, where: () => LogFields): Logger {
  const at =
    (level: LogLevel): LogMethod =>
    (first: unknown, second?: unknown) => {
      if (!port.isEnabled(level)) return
      // Types hold nobody who writes JavaScript, or gives what was caught as the sentence: the log takes text alone.
      const message = second === undefined ? undefined : messageOf(second)
      if (typeof first === 'object') port.write(level, where(), (first ?? undefined) as LogFields | undefined, message)
      else port.write(level, where(), undefined, messageOf(first))
    }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    isLevelEnabled: (level) => port.isEnabled(level),
    child: (fields) => loggerOf(port, () => ({ ...fields, ...where() })),
  }
}

/** For tasks without a log. */
export const silentLog: LogPort = { isEnabled: () => false, write: () => undefined }
