/**
 * The place in the group that this process alone may have: who had it before, and who took it. The broker is asked
 * beside everything else, and never waited for: what it does not tell is not told.
 */
import type { Clock } from '../../base/clock.ts'
import type { GroupDescription } from '../../broker/port.ts'
import type { IdentityFacts } from '../../view/diagnosis/facts.ts'
import type { AskedBroker } from './asked-broker.ts'

/** That it took over is worth telling for so long. */
const tellTakeoverMs = 300_000

export class Identity {
  readonly #groupId: string
  /** Under which the broker knows this process. */
  readonly name: string
  readonly #clock: Clock
  #broker: AskedBroker | undefined
  /** Ids of members that had the place before this process. */
  #before: GroupDescription['members'][number] | undefined
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
    void this.#ask().then((member) => {
      this.#before = member === undefined || member.memberId === ownId() ? undefined : member
      if (this.#before !== undefined) this.#tookFrom = { who: whoIs(this.#before), atMs: this.#clock.now() }
    })
  }

  /** The broker has fenced this process. It ends by itself at that time, if at all. */
  fenced(endsAtMs: number | null): void {
    this.#endsAtMs = endsAtMs
    void this.#ask().then((member) => {
      this.#holder = member === undefined ? null : whoIs(member)
    })
  }

  facts(): IdentityFacts {
    const { atMs = 0 } = this.#tookFrom ?? {}
    const tookFrom = this.#clock.now() - atMs < tellTakeoverMs ? this.#tookFrom : null
    return { name: this.name, holder: this.#holder, tookFrom, endsAtMs: this.#endsAtMs }
  }

  async #ask(): Promise<GroupDescription['members'][number] | undefined> {
    const group = (await this.#broker?.group(this.#groupId)) ?? null
    return group?.members.find(({ groupInstanceId }) => groupInstanceId === this.name)
  }
}

function whoIs({ clientId, clientHost, memberId }: GroupDescription['members'][number]): string {
  const at = clientHost === undefined ? '' : ` at ${clientHost.replace(/^\//, '')}`
  return `the client ${clientId}${at} (member ${memberId})`
}
