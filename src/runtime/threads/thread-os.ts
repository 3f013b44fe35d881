/** The operating system's view of this process's threads. It needs no help from a thread that is stuck. */
import { readdirSync, readFileSync } from 'node:fs'
import type { ThreadsSnapshot } from '../../view/view.ts'

export type OsThread = ThreadsSnapshot['platformThreads'][number]

/** Clock ticks are hundredths of a second on every Linux that Node.js runs on. */
const msPerTick = 10

/**
 * Empty where the system keeps no list of tasks. A worker thread has the name of its `Worker`, cut at 15 characters.
 * Read at once, which takes a fraction of a millisecond: no disk is behind these files, and on a busy machine each wait
 * for another thread would take longer than all of it.
 */
export function readOsThreads(): OsThread[] {
  const threads = taskIds().map(readOsThread)
  return threads.filter((thread) => thread !== undefined).sort((a, b) => a.tid - b.tid)
}

function taskIds(): string[] {
  try {
    return readdirSync('/proc/self/task')
  } catch {
    // Another system than Linux.
    return []
  }
}

/** Undefined for a thread that ended meanwhile. */
function readOsThread(tid: string): OsThread | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/self/task/${tid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The name may contain spaces and brackets. The last bracket ends it.
  const [, name, rest = ''] = /^\d+ \((.*)\) (.*)/s.exec(stat) ?? []
  if (name === undefined) return undefined
  const fields = rest.split(' ')
  const cpuTicks = Number(fields[11]) + Number(fields[12])
  return { name, tid: Number(tid), state: stateOf(fields[0] ?? ''), cpuMs: cpuTicks * msPerTick }
}

/** R runs or could run; D waits for a device and cannot be interrupted; every other state waits. */
function stateOf(letter: string): OsThread['state'] {
  if (letter === 'R') return 'RUNNABLE'
  return letter === 'D' ? 'BLOCKED' : 'WAITING'
}
