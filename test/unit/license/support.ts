import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JWK } from 'jose'
import { LicenseServer, type LicenseServerOptions, newSigningKey } from '../../../examples/license-server/server.ts'
import { VirtualClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { loadConfig } from '../../../src/config/load.ts'
import type { Fetch } from '../../../src/license/fetch-text.ts'
import { createLicense, type License } from '../../../src/license/license.ts'
import type { Timers } from '../../../src/license/timers.ts'

export const hourMs = 3_600_000
export const dayMs = 86_400_000
export const startMs = Date.parse('2026-01-01T00:00:00Z')
export const customer = 'Canary Customer Ltd'

/** Timers on a virtual clock. A callback may start asynchronous work; `advance` waits until it has set its next timer. */
export class VirtualTimers implements Timers {
  readonly #clock: VirtualClock
  #waiting: Array<{ readonly at: number; readonly run: () => void }> = []
  #isSet: () => void = () => undefined

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#clock.monotonic() + delayMs, run }
    this.#waiting.push(timer)
    this.#isSet()
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== timer)
    }
  }

  /** Lets time pass, firing what falls due in its order. */
  async advance(durationMs: number, onStep: () => void = () => undefined): Promise<void> {
    const until = this.#clock.monotonic() + durationMs
    for (;;) {
      let next = this.#waiting[0]
      for (const timer of this.#waiting) if (next === undefined || timer.at < next.at) next = timer
      if (next === undefined || next.at > until) break
      const timer = next
      const count = this.#waiting.length
      this.#waiting = this.#waiting.filter((other) => other !== timer)
      this.#clock.advance(Math.max(0, timer.at - this.#clock.monotonic()))
      timer.run()
      // Signatures are made by threads of the system: to ask turn by turn would take their core away.
      while (this.#waiting.length < count)
        await new Promise<void>((resolve) => {
          this.#isSet = resolve
        })
      onStep()
    }
    this.#clock.advance(until - this.#clock.monotonic())
    onStep()
  }
}

export interface World {
  readonly clock: VirtualClock
  readonly timers: VirtualTimers
  readonly server: LicenseServer
  readonly folder: string
  readonly log: string[]
  /** Addresses that were asked. */
  readonly asked: string[]
  /** What stands between license and server; the default hands everything on. */
  wire: (url: string, init: RequestInit, serve: () => Promise<Response>) => Promise<Response>
  license(settings?: readonly string[]): License
}

export const signingKey: JWK = await newSigningKey()

/** A license server and processes with a license, on one virtual clock, without sockets. */
export function world(options: Partial<LicenseServerOptions> = {}): World {
  const clock = new VirtualClock(startMs)
  const serverClock = new VirtualClock(startMs)
  const timers = new VirtualTimers(clock)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-license-'))
  const server = new LicenseServer({
    signingKey,
    // The server's clock runs true, whatever happens to the wall clock of the machine.
    now: () => serverClock.now() + clock.monotonic(),
    ...options,
  })
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(server.jwks()))
  const log: string[] = []
  const asked: string[] = []
  const self: World = {
    clock,
    timers,
    server,
    folder,
    log,
    asked,
    wire: (_url, _init, serve) => serve(),
    license: (settings = []) =>
      createLicense({
        config: loadConfig({
          application: {
            'license.public-keys': join(folder, 'keys.json'),
            'license.cache-file': join(folder, 'license.json'),
          },
          set: settings,
        }),
        clock,
        random: new Random(7),
        timers,
        fetch,
        log: (line) => log.push(`${line.level} ${line.message}`),
      }),
  }
  const fetch: Fetch = (url, init) => {
    asked.push(url)
    return self.wire(url, init, async () => {
      const action = new URL(url).pathname.split('/').at(-1) as 'activate'
      return Response.json({ token: await server.answer(action, JSON.parse(String(init.body))) })
    })
  }
  return self
}

export const online = 'license.server-url=https://license.example'
export function unreachable(): Promise<Response> {
  return Promise.reject(
    new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) }),
  )
}

/** A key of the reference server for two machines. */
export async function keyOf(w: World, days = 365, machines = 2): Promise<string> {
  return await w.server.issue({ customer, tier: 'gold', machines, expiresAtMs: startMs + days * dayMs })
}

export function idOf(key: string): string {
  return JSON.parse(Buffer.from(key.split('.')[1] as string, 'base64url').toString()).jti
}
