/** Several processes of the verifier's application as pods of one hot-standby group, and what can be seen of them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HaStatus } from '../../../src/http/ha-seam.ts'
import { EngineProcess } from './harness.ts'

export interface PodsOptions {
  readonly prefix: string
  readonly ids: readonly string[]
  /** Address of the broker as a pod is told it. */
  readonly bootstrapOf: (podId: string) => string
  readonly settings?: Readonly<Record<string, string>>
}

export class Pod {
  readonly id: string
  readonly engine: EngineProcess
  readonly stateFolder: string
  /** It stands still: asking it would only cost the time until one gives up. */
  #suspended = false

  constructor(id: string, { prefix, bootstrapOf, settings }: PodsOptions) {
    this.id = id
    this.stateFolder = mkdtempSync(join(tmpdir(), `millrace-state-${id}-`))
    this.engine = new EngineProcess({
      prefix,
      bootstrap: bootstrapOf(id),
      stateFolder: this.stateFolder,
      settings: { ...settings, 'ha.mode': 'hot-standby', 'ha.pod-id': id },
    })
  }

  suspend(): void {
    this.#suspended = true
    this.engine.suspend()
  }

  wake(): void {
    this.#suspended = false
    this.engine.wake()
  }

  async status(): Promise<HaStatus | undefined> {
    return (await this.#get<HaStatus>('/ha/status'))?.body
  }

  /** Name of the lifecycle state. */
  async lifecycle(): Promise<string | undefined> {
    return (await this.#get<{ current: string }>('/state'))?.body.current
  }

  async post(path: string): Promise<{ readonly status: number; readonly body: unknown }> {
    const response = await fetch(this.engine.url + path, { method: 'POST', signal: AbortSignal.timeout(20_000) })
    return { status: response.status, body: await response.json() }
  }

  async #get<T>(path: string): Promise<{ body: T } | undefined> {
    if (!this.engine.running || this.#suspended) return undefined
    try {
      const response = await fetch(this.engine.url + path, { signal: AbortSignal.timeout(3000) })
      return response.ok ? { body: (await response.json()) as T } : undefined
    } catch {
      return undefined
    }
  }

  dispose(): void {
    this.wake()
    this.engine.dispose()
    rmSync(this.stateFolder, { recursive: true, force: true })
  }
}

/** How long anything may take on a machine that is busy with other things; nothing here waits longer. */
const patienceMs = 120_000
const pollMs = 40

export class Pods {
  readonly all: readonly Pod[]
  readonly #options: PodsOptions
  #lookedAtMs = 0

  constructor(options: PodsOptions) {
    this.#options = options
    this.all = options.ids.map((id) => new Pod(id, options))
  }

  pod(id: string): Pod {
    const pod = this.all.find((each) => each.id === id)
    assert.ok(pod, `there is no pod ${id}`)
    return pod
  }

  /** Another process under the name of a pod, with a folder of its own. */
  double(id: string): Pod {
    return new Pod(id, this.#options)
  }

  async start(): Promise<void> {
    for (const pod of this.all) await pod.engine.start()
    await this.untilReady()
  }

  /** What every pod says of itself; those that say nothing are left out. */
  async statuses(): Promise<HaStatus[]> {
    const all = await Promise.all(this.all.map((pod) => pod.status()))
    return all.filter((status) => status !== undefined)
  }

  /** The pod that says of itself that it is active; of two that say so the one of the newer token. */
  async active(): Promise<HaStatus | undefined> {
    const actives = (await this.statuses()).filter((status) => status.selfState === 'ACTIVE' && !status.selfRestarting)
    return actives
      .filter((status) => status.tokenHolder === status.selfPodId)
      .toSorted((a, b) => b.tokenEpoch - a.tokenEpoch)[0]
  }

  /** Waits until `found` gives something; fails with what was waited for, the roles and the ends of the logs. */
  async until<T>(what: string, found: () => Promise<T | undefined | false>, withinMs = patienceMs): Promise<T> {
    const startedAtMs = performance.now()
    for (;;) {
      const result = await found()
      if (result !== undefined && result !== false) return result
      const waitedMs = Math.round(performance.now() - startedAtMs)
      const lost = await this.#lost()
      if (waitedMs > withinMs || lost.length > 0) {
        assert.fail(`Waited ${waitedMs} ms for ${what} in vain. ${lost.join('; ')}\n${await this.describe()}`)
      }
      await sleep(pollMs)
    }
  }

  /** Pods that nothing can be waited for any more. */
  async #lost(): Promise<string[]> {
    const lost = this.all
      .filter(({ engine }) => engine.crashes.length > 0)
      .map(({ id, engine }) => `${id} ended by itself (${engine.crashes.join(', ')})`)
    if (performance.now() - this.#lookedAtMs < 1000) return lost
    this.#lookedAtMs = performance.now()
    for (const pod of this.all) if ((await pod.lifecycle()) === 'FAILED') lost.push(`${pod.id} has failed`)
    return lost
  }

  /** Waits for one active pod, and for `standbys` others that are ready. Answers the active pod's status. */
  async untilReady(standbys = this.all.length - 1): Promise<HaStatus> {
    return await this.until(`one active and ${standbys} ready pods`, async () => {
      const statuses = await this.statuses()
      const active = await this.active()
      const ready = statuses.filter((status) => status.selfState === 'READY_STANDBY' && status.tailCaughtUp)
      return ready.length >= standbys && active !== undefined && active.readyStandbyCount >= standbys && active
    })
  }

  /** Waits until another pod than before is active, under a newer token. */
  async untilMoved(from: HaStatus, what: string, to?: string): Promise<HaStatus> {
    return await this.until(`${what} (before: ${from.selfPodId} in epoch ${from.tokenEpoch})`, async () => {
      const active = await this.active()
      if (active === undefined || active.tokenEpoch <= from.tokenEpoch) return false
      return (to === undefined ? active.selfPodId !== from.selfPodId : active.selfPodId === to) && active
    })
  }

  async describe(): Promise<string> {
    const lines: string[] = []
    for (const pod of this.all) {
      const status = await pod.status()
      const roles = status
        ? `${status.selfState}, epoch ${status.tokenEpoch} of ${status.tokenHolder}, lag ${status.replicationLagRecords}, tail ${status.tailFreshnessMs} ms`
        : 'no status'
      lines.push(`--- ${pod.id}: ${await pod.lifecycle()}; ${roles}\n${pod.engine.log.slice(-4000)}`)
    }
    return lines.join('\n')
  }

  /** Ends that no test brought about. */
  assertNoCrash(): void {
    for (const { id, engine } of this.all) {
      assert.deepEqual(engine.crashes, [], `${id} ended by itself; its log:\n${engine.log.slice(-6000)}`)
    }
  }

  dispose(): void {
    for (const pod of this.all) pod.dispose()
  }
}
