/** Who came into the group and who went, from one rebalance to the next. */
import type { GroupChange } from '../../view/view.ts'
import type { RosterEntry } from './membership-codec.ts'

const kept = 50

export class GroupHistory {
  /** When each member was seen to come; null for those that were there before this process looked. */
  #members: ReadonlyMap<string, number | null> | undefined
  #names = new Map<string, string>()
  #changes: readonly GroupChange[] = []

  /** Newest first. */
  get changes(): readonly GroupChange[] {
    return this.#changes
  }

  /** All members after a rebalance; an empty list comes from a leader of another kind, and says nothing. */
  roster(members: readonly RosterEntry[], now: number): void {
    if (members.length === 0) return
    const before = this.#members
    const here = new Map(members.map((member) => [placeOf(member), before?.get(placeOf(member)) ?? null]))
    const names = new Map(members.map((member) => [placeOf(member), nameOf(member)]))
    this.#members = here
    if (before !== undefined) {
      const came = [...here.keys()].filter((place) => !before.has(place))
      for (const place of came) here.set(place, now)
      const went = [...before].filter(([place]) => !here.has(place))
      if (came.length > 0 || went.length > 0) {
        const change: GroupChange = {
          atMs: now,
          came: came.map((place) => names.get(place) as string),
          went: went.map(([place, cameAtMs]) => ({
            member: this.#names.get(place) as string,
            stayedMs: cameAtMs === null ? null : now - cameAtMs,
          })),
        }
        this.#changes = [change, ...this.#changes].slice(0, kept)
      }
    }
    this.#names = names
  }
}

/** A static member that is started anew has another id, and is still the same. */
function placeOf({ memberId, groupInstanceId }: RosterEntry): string {
  return groupInstanceId ?? memberId
}

/** The id begins with the client's. */
function nameOf(member: RosterEntry): string {
  const host = member.identity?.host
  return host === undefined ? placeOf(member) : `${placeOf(member)} on ${host}`
}
