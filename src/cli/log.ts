import type { LogLine } from '../runtime/contract.ts'
import type { ProgressLine } from './progress.ts'

/** A log line for people: time, level, where, what, and the fields behind it. */
export function formatLogLine(line: LogLine, at: Date): string {
  const time = at.toISOString().slice(11, 23)
  const fields = Object.entries(line.fields ?? {}).map(([name, value]) => ` ${name}=${formatField(value)}`)
  return `${time} ${line.level.toUpperCase().padEnd(5)} ${line.component}: ${line.message}${fields.join('')}`
}

function formatField(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : (JSON.stringify(value) ?? 'undefined')
}

export function logAbove(progress: ProgressLine): (line: LogLine) => void {
  return (line) => progress.above(formatLogLine(line, new Date()))
}
