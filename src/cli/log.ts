import type { LogLine } from '../runtime/contract.ts'
import { type LogFilter, plainLog } from '../runtime/log.ts'
import type { ProgressLine } from './progress.ts'

/** A log line for people: time, level, where, what, and the fields behind it. */
export function formatLogLine(line: LogLine, at: Date): string {
  const time = at.toISOString().slice(11, 23)
  const fields = Object.entries(line.fields ?? {}).map(([name, value]) => ` ${name}=${formatField(value)}`)
  const message = line.message.replaceAll('\n', '\\n')
  return `${time} ${line.level.toUpperCase().padEnd(5)} ${line.component}: ${message}${fields.join('')}`
}

function formatField(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : (JSON.stringify(value) ?? 'undefined')
}

/** Lines for people on a terminal, above the progress line; JSON for programs elsewhere. */
export function commandLog(progress: ProgressLine, isWritten: LogFilter): (line: LogLine) => void {
  if (!progress.enabled) return plainLog(isWritten)
  return (line) => {
    if (isWritten(line)) progress.above(formatLogLine(line, new Date()))
  }
}
