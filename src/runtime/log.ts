/** The default log: one line of JSON each to standard error. */
import type { LogLine } from './contract.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof levels)[number]

/** Line breaks in a message would let one line pretend to be two: JSON escapes them. */
export function plainLog(level: Level): (line: LogLine) => void {
  const least = levels.indexOf(level)
  return (line) => {
    if (levels.indexOf(line.level) < least) return
    const { level: at, component, message, fields } = line
    process.stderr.write(
      `${JSON.stringify({ time: new Date().toISOString(), level: at, component, message, ...fields })}\n`,
    )
  }
}
