/**
 * The place in the group that this process alone may have: who had it before, and who took it. The broker is asked
 * beside everything else, and never waited for: what it does not tell is not told.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { PlaceHolder } from '../../engine/recovery/broker-questions.ts'
import type { IdentityFacts } from '../../view/diagnosis/facts.ts'
import type { AskedBroker } from './asked-broker.ts'

/** That it took over is worth telling for so long. */
const tellTakeoverMs = 300_000
const againMs = 500

export class Identity {
  readonly #groupId: string
  /** Under which the broker knows this process. */
  readonly name: string
  readonly #clock: Clock
  #broker: AskedBroker | undefined
  #tookFrom: IdentityFacts['tookFrom'] = null
  #holder: string | null = null
  #endsAtMs: number | null = null

  constructor(groupId: string, name: string, clock: Clock) {
    this.#groupId = groupId
    this.name = name
    this.#clock = clock
  }

  /** To be called before the engine may join. The answer may come later: `ownId` tells a predecessor from this process. */
  begin(broker: AskedBroker, ownId: () => string | undefined): void {
    this.#broker = broker
    void this.#ask().then((before) => {
      if (before === null || before.memberId === ownId()) return
      this.#tookFrom = { who: whoIs(before), atMs: this.#clock.now() }
    })
  }

  /** The broker has fenced this process, which the group knew by that id. It ends by itself at that time. */
  fenced(endsAtMs: number, ownId: string | undefined): void {
    this.#endsAtMs = endsAtMs
    void this.#askHolder(endsAtMs, ownId)
  }

  facts(): IdentityFacts {
    const { atMs = 0 } = this.#tookFrom ?? {}
    const tookFrom = this.#clock.now() - atMs < tellTakeoverMs ? this.#tookFrom : null
    return { name: this.name, holder: this.#holder, tookFrom, endsAtMs: this.#endsAtMs }
  }

  /**
   * Whoever comes takes the transactional id first and the place in the group some time later: until then the group
   * still names this process itself. And what the newcomer says of itself is told when the group is at rest.
   */
  async #askHolder(endsAtMs: number, ownId: string | undefined): Promise<void> {
    for (;;) {
      const holder = await this.#ask()
      if (holder !== null && holder.memberId !== ownId) {
        this.#holder = whoIs(holder)
        if (holder.client !== null || holder.host !== null) return
      }
      if (this.#clock.now() + againMs >= endsAtMs) return
      await sleep(againMs, undefined, { ref: false })
    }
  }

  async #ask(): Promise<PlaceHolder | null> {
    return (await this.#broker?.place(this.#groupId, this.name)) ?? null
  }
}

function whoIs({ memberId, client, host }: PlaceHolder): string {
  const name = client === null ? 'a process' : `the client ${client}`
  return `${name}${host === null ? '' : ` on ${host}`} (member ${memberId})`
}
