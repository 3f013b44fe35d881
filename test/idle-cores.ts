/** Whether the cores of this machine have time to spare, over the last seconds. */
import { cpus } from 'node:os'

const spanMs = 4000
const idleShare = 0.5

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
  #areIdle = false

  /** Over the last whole span; false before there is one. Ask about once a second. */
  areIdle(): boolean {
    const now = timesNow()
    if (now.atMs - this.#since.atMs < spanMs) return this.#areIdle
    this.#areIdle = now.idle - this.#since.idle > idleShare * (now.all - this.#since.all)
    this.#since = now
    return this.#areIdle
  }
}
