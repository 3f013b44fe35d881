/** `millrace ha`: the state of the hot-standby group, and who is to be active. */
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../config/load.ts'
import { EngineError } from '../../base/errors.ts'
import type { HaAcknowledgement, HaHistory, HaStatus } from '../../http/ha-seam.ts'
import { exitCodes } from '../exit-codes.ts'
import {
  type HaAnswer,
  HaClient,
  type HaOptions,
  type HaRefusal,
  type HaVerb,
  interfaceUrl,
  refusalError,
} from './ha-client.ts'
import { historyText, rolesLine, statusText } from './ha-members.ts'
import { type Before, beforeOf, commandProgress, groupIsReady, restartingPod, type Sent } from './ha-wait.ts'
import { ProgressLine } from '../progress.ts'

export interface HaArguments {
  readonly url?: string
  readonly config?: string
  readonly set: readonly string[]
  readonly json: boolean
  /** Seconds; `true` where the option came without a number. */
  readonly wait?: number | true
}

const defaultWaitSeconds = 60
const pollMs = 200

interface Deadline {
  readonly atMs: number
  readonly seconds: number
}

/** Prints who is what; with `--wait`, once the group is as it should be. */
export async function haStatus(args: HaArguments): Promise<number> {
  return await withSession(args, async (session) => {
    const status = args.wait === undefined ? await session.status() : await session.untilReady()
    session.print(status, () => statusText(status))
    return exitCodes.clean
  })
}

/** Prints who became active, when and why. */
export async function haHistory(args: HaArguments): Promise<number> {
  return await withSession(args, async (session) => {
    const history = await session.history()
    session.print(history, () => historyText(history))
    return exitCodes.clean
  })
}

/** Sends a command; with `--wait`, answers once its result can be seen. */
export async function haCommand(verb: HaVerb, pod: string | undefined, args: HaArguments & HaOptions): Promise<number> {
  return await withSession(args, async (session) => {
    if (args.wait === undefined) {
      const sent = await session.send(verb, pod, args)
      session.print(sent, () => `${sentText(sent)}\n`)
      return exitCodes.clean
    }
    const startedAtMs = performance.now()
    const { sent, before } = await session.sendPatiently(verb, pod, args)
    const { commandOffset } = sent
    const now = await session.untilDone({ verb, pod, commandOffset }, before)
    const waitedMs = Math.round(performance.now() - startedAtMs)
    const result = { ...sent, active: now.active, tokenEpoch: now.tokenEpoch, waitedMs }
    const holds = now.reason ?? `${now.active} is ACTIVE in epoch ${now.tokenEpoch}, after ${waitedMs} ms`
    session.print(result, () => `${holds}.\n`)
    return exitCodes.clean
  })
}

function sentText({ command, target, force, commandOffset }: HaAcknowledgement): string {
  const what = [command, ...(target === null ? [] : [target]), ...(force ? ['(forced)'] : [])].join(' ')
  return `${what} is published at offset ${commandOffset}; 'millrace ha status' shows what becomes of it.`
}

async function withSession(args: HaArguments, work: (session: Session) => Promise<number>): Promise<number> {
  const progress = new ProgressLine()
  try {
    return await work(new Session(args, progress))
  } finally {
    progress.clear()
  }
}

class Session {
  readonly #client: HaClient
  readonly #json: boolean
  readonly #progress: ProgressLine
  readonly #deadline: Deadline
  /** What was seen last, for the sentence of a wait that was in vain. */
  #last = 'nothing was seen yet'

  constructor(args: HaArguments, progress: ProgressLine) {
    const config = loadConfig({
      environment: process.env,
      set: args.set,
      ...(args.config !== undefined && { file: args.config }),
    })
    const token = config.get('runtime.http.auth.token')
    this.#client = new HaClient({ url: interfaceUrl(config, args.url), token })
    this.#json = args.json
    this.#progress = progress
    const seconds = typeof args.wait === 'number' ? args.wait : defaultWaitSeconds
    this.#deadline = { atMs: performance.now() + seconds * 1000, seconds }
  }

  async status(): Promise<HaStatus> {
    return this.#valueOf(await this.#client.status())
  }

  async history(): Promise<HaHistory> {
    return this.#valueOf(await this.#client.history())
  }

  async send(verb: HaVerb, pod: string | undefined, options: HaOptions): Promise<HaAcknowledgement> {
    return this.#valueOf(await this.#client.command(verb, pod, options))
  }

  print(value: object, text: () => string): void {
    this.#progress.clear()
    process.stdout.write(this.#json ? `${JSON.stringify(value)}\n` : text())
  }

  /** Sends again what was refused for a reason that passes: a restart in place, a view that is not fresh. */
  async sendPatiently(
    verb: HaVerb,
    pod: string | undefined,
    options: HaOptions,
  ): Promise<{ readonly sent: HaAcknowledgement; readonly before: Before }> {
    for (;;) {
      const before = await this.#look(`${verb}: the pod that was asked has no status`)
      const answer = await this.#client.command(verb, pod, options)
      if (answer.ok) return { sent: answer.value, before: beforeOf(before) }
      const restarting = restartingPod(before, pod) ?? (await this.#restartingNow(answer, pod))
      if (answer.status !== 503 && restarting === undefined) throw refusalError(this.#client, answer)
      this.#note(restarting === undefined ? answer.reason : `${restarting} restarts its engine in place`)
      await this.#pause(`${verb} could not be sent`)
    }
  }

  async untilDone(
    sent: Sent,
    before: Before,
  ): Promise<{ readonly active: string; readonly tokenEpoch: number; readonly reason?: string }> {
    const { verb } = sent
    for (;;) {
      const now = await this.#look(`${verb} was published, but its result cannot be seen`)
      const progress = commandProgress(sent, before, now)
      if (progress.done && 'failed' in progress) {
        throw new EngineError('COMMAND_REFUSED', `The ${verb} was not carried out: ${progress.failed}.`)
      }
      if (progress.done) return { ...progress, tokenEpoch: now.tokenEpoch }
      await this.#pause(`${verb} was published, but its result is not there; the log of the active pod says why`)
    }
  }

  async untilReady(): Promise<HaStatus> {
    for (;;) {
      const now = await this.#look('the pod that was asked has no status')
      if (groupIsReady(now)) return now
      await this.#pause('the group is not as it should be')
    }
  }

  /** A status, however long the pod takes to have one; what a caller must correct is told at once. */
  async #look(vain: string): Promise<HaStatus> {
    for (;;) {
      const answer = await this.#client.status()
      if (answer.ok) {
        this.#note(rolesLine(answer.value))
        return answer.value
      }
      if (answer.status !== 0 && answer.status !== 503) throw refusalError(this.#client, answer)
      this.#note(answer.reason)
      await this.#pause(vain)
    }
  }

  async #restartingNow(answer: HaRefusal, pod: string | undefined): Promise<string | undefined> {
    if (answer.status !== 409) return undefined
    const status = await this.#client.status()
    return status.ok ? restartingPod(status.value, pod) : undefined
  }

  #note(seen: string): void {
    this.#last = seen
    this.#progress.show(seen)
  }

  async #pause(vain: string): Promise<void> {
    if (performance.now() + pollMs > this.#deadline.atMs) {
      throw new EngineError('COMMAND_REFUSED', `Waited ${this.#deadline.seconds} s: ${vain} (${this.#last}).`)
    }
    await sleep(pollMs)
  }

  #valueOf<T>(answer: HaAnswer<T>): T {
    if (answer.ok) return answer.value
    throw refusalError(this.#client, answer)
  }
}
