/** How numbers and times are written, and in which order names stand. */

export type Zone = 'utc' | 'local'
let zone: Zone = localStorage.getItem('millrace.zone') === 'local' ? 'local' : 'utc'

export function zoneOf(): Zone {
  return zone
}

export function setZone(next: Zone): void {
  zone = next
  localStorage.setItem('millrace.zone', next)
}

const plain = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })

export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : plain.format(value)
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let left = value
  let unit = 0
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024
    unit++
  }
  return `${plain.format(left)} ${units[unit]}`
}

/** A length of time, in the two units that tell most. */
export function lasting(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  const sign = ms < 0 ? '−' : ''
  const left = Math.abs(ms)
  if (left < 1000) return `${sign}${Math.round(left)} ms`
  if (left < 59_950) return `${sign}${plain.format(left / 1000)} s`
  // Rounded first: a minute has no sixtieth second.
  const seconds = Math.round(left / 1000)
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${sign}${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${sign}${hours} h ${minutes % 60} min`
  return `${sign}${plain.format(Math.floor(hours / 24))} d ${hours % 24} h`
}

export function instant(at: number | string | null | undefined): string {
  if (at === null || at === undefined) return '–'
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return '–'
  if (zone === 'utc') return `${date.toISOString().slice(0, 19).replace('T', ' ')} Z`
  const pad = (n: number): string => String(n).padStart(2, '0')
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`
}

/** An instant in two parts, for axes: the day, and the time of the day, to the second where that tells anything. */
export function dayAndTime(atMs: number, seconds: boolean): readonly [day: string, time: string] {
  const whole = instant(atMs)
  return [whole.slice(0, 10), whole.slice(11, seconds ? 19 : 16) + whole.slice(19)]
}

const byNumbers = new Intl.Collator('en-US', { numeric: true })

/** Numbers in names count as numbers: `in:2` stands before `in:10`, and the partitions of a topic stand together. */
export function compareNames(a: string, b: string): number {
  const others = b.split(':')
  for (const [i, part] of a.split(':').entries()) {
    const other = others[i] ?? ''
    // What is equal needs no collator, and the topic of two partitions often is.
    const order = part === other ? 0 : byNumbers.compare(part, other)
    if (order !== 0) return order
  }
  return a.length - b.length
}

export function json(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
