/** What a process and its threads have used so far, as the operating system counts it. */
import { readdirSync, readFileSync } from 'node:fs'

/** CPU seconds by thread name; threads of one name are added up. Empty where the system keeps no such list. */
export function threadSeconds(): Map<string, number> {
  const seconds = new Map<string, number>()
  for (const tid of readdirSync('/proc/self/task')) {
    try {
      const name = readFileSync(`/proc/self/task/${tid}/comm`, 'latin1').trim()
      const ran = Number(readFileSync(`/proc/self/task/${tid}/schedstat`, 'latin1').split(' ')[0])
      seconds.set(name, (seconds.get(name) ?? 0) + ran / 1e9)
    } catch (error) {
      // A thread that has ended meanwhile no longer counts.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' && (error as NodeJS.ErrnoException).code !== 'ESRCH')
        throw error
    }
  }
  return seconds
}

export function difference(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): Map<string, number> {
  const used = new Map<string, number>()
  for (const [name, seconds] of after) {
    const more = seconds - (before.get(name) ?? 0)
    if (more >= 0.005) used.set(name, more)
  }
  return new Map([...used].sort((a, b) => b[1] - a[1]))
}

/** CPU seconds of this process. */
export function processSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** CPU seconds of another process; 0 when it cannot be read. */
export function otherProcessSeconds(pid: number | undefined): number {
  if (pid === undefined) return 0
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}

/** CPU seconds of the whole machine, idle time left out. */
export function machineSeconds(): number {
  const fields = (/^cpu +(.*)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1] ?? '').split(' ').map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields
  return (user + nice + system + irq + softirq) / 100
}

/** Peak memory of this process. */
export function peakMebibytes(): number {
  return Math.round(process.resourceUsage().maxRSS / 1024)
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2
}
