/** The operating system's view of this process's threads: needs no help from a thread that is stuck. */
import { readdir, readFile } from 'node:fs/promises'
import type { ThreadsSnapshot } from './view.ts'

export type OsThread = ThreadsSnapshot['platformThreads'][number]

/** Clock ticks are hundredths of a second on every Linux that Node.js runs on. */
const msPerTick = 10

/** Empty where the system keeps no task list. Worker threads have the name their `Worker` was given, cut at 15. */
export async function readOsThreads(): Promise<OsThread[]> {
  const tids = await readdir('/proc/self/task').catch((): string[] => [])
  const threads = await Promise.all(tids.map(readOsThread))
  return threads.filter((thread) => thread !== undefined).sort((a, b) => a.tid - b.tid)
}

/** Undefined for a thread that ended meanwhile. */
async function readOsThread(tid: string): Promise<OsThread | undefined> {
  const stat = await readFile(`/proc/self/task/${tid}/stat`, 'latin1').catch(() => '')
  // The name may hold spaces and brackets itself; the last bracket ends it.
  const [, name, rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(stat) ?? []
  if (name === undefined) return undefined
  const fields = rest.split(' ')
  const cpuTicks = Number(fields[11]) + Number(fields[12])
  return { name, tid: Number(tid), state: stateOf(fields[0] ?? ''), cpuMs: cpuTicks * msPerTick }
}

/** R runs or could, D waits for a device and cannot be interrupted; all else waits. */
function stateOf(letter: string): OsThread['state'] {
  if (letter === 'R') return 'RUNNABLE'
  return letter === 'D' ? 'BLOCKED' : 'WAITING'
}
