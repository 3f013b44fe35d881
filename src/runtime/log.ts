/** The default log: each line is one line of JSON on standard error. */
import { type LogLevel, logLevels } from '../base/logger.ts'
import type { Config } from '../config/config.ts'
import type { LogLine, OwnLogger, RuntimeOptions } from './contract.ts'

/** Whether a line is to be written. */
export type LogFilter = (line: LogLine) => boolean

/** Where lines go: to `log` all of them, to a logger of the application's own or to standard error those that are to be written. */
export function logOf({ log, logger }: RuntimeOptions, config: Config): (line: LogLine) => void {
  const written = logger === undefined ? undefined : ownLog(logger, logFilterOf(config))
  if (written === undefined) return log ?? plainLog(logFilterOf(config))
  if (log === undefined) return written
  return (line) => {
    log(line)
    written(line)
  }
}

function ownLog(logger: OwnLogger, isWritten: LogFilter): (line: LogLine) => void {
  return (line) => {
    const { level, component, message, fields } = line
    if (!isWritten(line) || logger.isLevelEnabled?.(level) === false) return
    logger[level]({ component, ...besides(fields, ['component']) }, message)
  }
}

/** Without the secrets of the configuration, which may stand in what a function wrote or an error says. */
export function maskedLog(config: Config, log: (line: LogLine) => void): (line: LogLine) => void {
  const text = (value: string): string => config.maskText(value)
  return ({ message, fields, ...line }) =>
    log({ ...line, message: text(message), ...(fields && { fields: maskedFields(fields, text) }) })
}

type Fields = NonNullable<LogLine['fields']>

function maskedFields(fields: Fields, text: (value: string) => string): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, maskedTexts(value, text)]))
}

/** Fields are plain data by now: they have come from another thread. */
function maskedTexts(value: unknown, text: (value: string) => string): unknown {
  if (typeof value === 'string') return text(value)
  if (Array.isArray(value)) return value.map((item) => maskedTexts(item, text))
  if (typeof value !== 'object' || value === null) return value
  return maskedFields(value as Fields, text)
}

/** Details of a line beside what it has itself: one of the same name has an underscore behind it. */
function besides(fields: Fields = {}, own: readonly string[]): Fields {
  if (!own.some((name) => Object.hasOwn(fields, name))) return fields
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [own.includes(name) ? `${name}_` : name, value]),
  )
}

/** From which level on lines of a component are written. */
export function levelOf(component: string, config: Config): LogLevel {
  const isWritten = logFilterOf(config)
  return logLevels.find((level) => isWritten({ level, component, message: '' })) ?? 'error'
}

/** By the level of the line's component in `log.levels`, else by `log.level`. */
export function logFilterOf(config: Config): LogFilter {
  return logFilter(config.get('log.level'), config.get('log.levels') ?? '')
}

/** `byComponent` as in `ha=debug,http=warn`; the configuration has checked it. */
export function logFilter(least: LogLevel, byComponent = ''): LogFilter {
  const all = logLevels.indexOf(least)
  const own = new Map<string, number>()
  for (const pair of byComponent.split(',').filter((text) => text !== '')) {
    const [component = '', level = ''] = pair.split('=')
    own.set(component, logLevels.indexOf(level as LogLevel))
  }
  return ({ level, component }) => logLevels.indexOf(level) >= (own.get(component) ?? all)
}

/** A line break in a message could make one line look like two. JSON escapes it. */
export function plainLog(isWritten: LogFilter): (line: LogLine) => void {
  return (line) => {
    if (!isWritten(line)) return
    const { level, component, message, fields } = line
    const own = { time: new Date().toISOString(), level, component, message }
    process.stderr.write(`${JSON.stringify({ ...own, ...besides(fields, Object.keys(own)) })}\n`)
  }
}
