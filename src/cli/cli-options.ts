/** Options that `run` and `demo` share, checked before anything is started. */
import { InvalidArgumentError } from 'commander'

export function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}

export function parseRate(text: string): number {
  const rate = Number(text)
  if (!Number.isFinite(rate) || rate <= 0) throw new InvalidArgumentError('It is a number of records a second above 0.')
  return rate
}

export function parseSetting(text: string, before: readonly string[]): string[] {
  if (!/^[^=\s]+=/.test(text)) throw new InvalidArgumentError('It is key=value, as in --set engine.lanes.count=2.')
  return collect(text, before)
}
