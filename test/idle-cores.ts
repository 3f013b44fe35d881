/** Whether the cores of this machine have time to spare. */
import { cpus } from 'node:os'

const spanMs = 3000
const idleShare = 0.3

interface Times {
  readonly atMs: number
  readonly idle: number
  readonly all: number
}

function timesNow(): Times {
  const times = cpus().map((core) => core.times)
  const idle = times.reduce((sum, of) => sum + of.idle, 0)
  const all = times.reduce((sum, of) => sum + of.idle + of.user + of.nice + of.sys + of.irq, 0)
  return { atMs: performance.now(), idle, all }
}

export class IdleCores {
  #since = timesNow()

  /** Said once in three seconds, of those seconds: whoever begins something more then is asked about the next ones with it. */
  wereIdle(): boolean {
    const now = timesNow()
    if (now.atMs - this.#since.atMs < spanMs) return false
    const wereIdle = now.idle - this.#since.idle > idleShare * (now.all - this.#since.all)
    this.#since = now
    return wereIdle
  }
}
