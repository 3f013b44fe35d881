/** A commit that took effect is not given up: where its answer was lost, the engine finds it by what the broker has. */
import type { BrokerPort, OffsetToCommit } from '../../src/broker/port.ts'
import { decodeTag } from '../../src/engine/commit/tag.ts'
import type { Tamper } from './faulty-broker.ts'

/** Watches what one process commits. Where it reads topics of its own, it asks for offsets for other reasons too: of no use there. */
export class CommitsGivenUp {
  readonly #client: () => BrokerPort
  readonly #violate: (what: string) => void
  /** Number of the commit that is under way, or was last. */
  #attempted = ''
  /** Nobody saw how its transaction ended; `asked`: the broker has said what is committed since. */
  #unknown: 'no' | 'yes' | 'asked' = 'no'

  constructor(client: () => BrokerPort, violate: (what: string) => void) {
    this.#client = client
    this.#violate = violate
  }

  /** Sees what goes to the broker, and lets it pass. */
  watching(tamper: Tamper | undefined): Tamper {
    return async (name, args, call, other) => {
      if (name === 'commitOffsetsInTransaction') {
        this.#attempted = numberOf(args[3] as readonly OffsetToCommit[])
        this.#unknown = 'no'
      }
      try {
        const answer = await (tamper ? tamper(name, args, call, other) : call(args))
        if (name === 'committedOffsets' && this.#unknown === 'yes') this.#unknown = 'asked'
        return answer
      } catch (error) {
        if (name === 'endTransaction') this.#unknown = 'yes'
        throw error
      }
    }
  }

  /** The engine goes on behind the commit. */
  applied(): void {
    this.#unknown = 'no'
  }

  /** The engine starts over. It has asked, and says that the commit did not take effect: the broker must say the same. */
  async restarting(): Promise<void> {
    const unknown = this.#unknown
    // The start asks again, for its own reasons.
    this.#unknown = 'no'
    if (unknown !== 'asked') return
    const attempted = this.#attempted
    const committed = numberOf(await this.#client().committedOffsets('sim', null, true))
    if (committed === attempted) this.#violate(`the commit ${attempted} took effect, and was given up`)
  }
}

/** Number of the newest commit whose tag these offsets carry. */
function numberOf(offsets: ReadonlyArray<{ readonly metadata?: string }>): string {
  const tags = offsets.flatMap(({ metadata }) => decodeTag(metadata ?? '') ?? [])
  const [newest] = tags.sort((a, b) => b.tokenEpoch - a.tokenEpoch || b.seq - a.seq)
  return newest === undefined ? '' : `${newest.tokenEpoch}.${newest.seq}`
}
