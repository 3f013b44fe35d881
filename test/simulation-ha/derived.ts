/** Everything that follows from a seed. */
import type { Random } from '../../src/base/random.ts'

/**
 * What goes wrong in a run. `wild`: everything; the others are pure, so that what must not happen can be told:
 * nobody may take over because the broker was away, because the active restarts in place, because a pod joins, or
 * because the coordinator topic was emptied meanwhile.
 */
export type Profile = 'wild' | 'outages' | 'restarts' | 'joins' | 'emptied'

export interface Derived {
  readonly profile: Profile
  readonly pods: number
  readonly priorities: readonly number[]
  readonly records: number
  readonly keys: number
  readonly slowestMs: number
  readonly hiccup: number
  readonly lostRequest: number
  readonly lostAnswer: number
  readonly messageMs: number
  readonly clockDrift: number
  readonly crashes: number
  readonly losesStores: boolean
  readonly freezes: number
  readonly cuts: number
  /** Chance that a pod is cut off at the moment at which it is promoted, its engine for a shorter time. */
  readonly cutsAtPromotion: number
  readonly outages: number
  /** Part of the outages in which the broker reads, and cannot write. */
  readonly readOnlyOutages: number
  readonly restarts: number
  /** Times at which an active engine has used up its restarts. */
  readonly exhaustions: number
  readonly commands: number
  readonly pauses: number
  readonly terminations: number
  readonly twins: number
  readonly recreations: number
  /** Times at which the coordinator topic loses all its records, and stays the same topic. */
  readonly emptyings: number
  /** Times at which the broker refuses all that one pod writes to the coordinator topic, and nothing else. */
  readonly mutes: number
  /** Times at which an operator pauses failover for a while. */
  readonly maintenances: number
  /** Pods that start after the middle of the run are of the next build, which has one store more. */
  readonly update: boolean
  readonly wallJumps: number
  readonly minPromotionIntervalMs: number
}

/** Nothing goes wrong. */
export const calm = {
  hiccup: 0,
  lostRequest: 0,
  lostAnswer: 0,
  crashes: 0,
  losesStores: false,
  freezes: 0,
  cuts: 0,
  cutsAtPromotion: 0,
  outages: 0,
  restarts: 0,
  exhaustions: 0,
  commands: 0,
  pauses: 0,
  terminations: 0,
  twins: 0,
  recreations: 0,
  emptyings: 0,
  mutes: 0,
  maintenances: 0,
  update: false,
}

export function derive(random: Random): Derived {
  const pods = 2 + random.int(3)
  const profile = random.pick(['wild', 'wild', 'wild', 'wild', 'outages', 'restarts', 'joins', 'emptied'] as const)
  const priorities = Array.from({ length: pods }, () => random.pick([100, 100, 100, 50, 0]))
  // Somebody must be willing.
  priorities[random.int(pods)] = 100
  const base = {
    pods,
    priorities,
    profile,
    records: 10 + random.int(40),
    keys: 1 + random.int(4),
    slowestMs: random.pick([1, 5, 15]),
    messageMs: random.pick([0.1, 1, 10]),
    clockDrift: random.pick([0, 0.01, 0.1]),
    wallJumps: random.int(3),
    readOnlyOutages: 0.5,
    minPromotionIntervalMs: random.pick([0, 1000]),
  }
  if (profile === 'outages') return { ...base, ...calm, outages: 1 + random.int(3), pauses: random.int(2) }
  if (profile === 'restarts') return { ...base, ...calm, restarts: 1 + random.int(4), pauses: random.int(2) }
  if (profile === 'joins') return { ...base, ...calm, crashes: 1 + random.int(4) }
  if (profile === 'emptied') return { ...base, ...calm, crashes: 1 + random.int(4), emptyings: 1 + random.int(2) }
  return {
    ...base,
    hiccup: random.pick([0, 0, 0.01]),
    lostRequest: random.pick([0, 0, 0.01, 0.03]),
    lostAnswer: random.pick([0, 0, 0.01, 0.03]),
    crashes: random.int(4),
    losesStores: random.chance(0.3),
    freezes: random.int(3),
    cuts: random.int(4),
    cutsAtPromotion: random.pick([0, 0, 0.4]),
    outages: random.int(2),
    restarts: random.int(3),
    // Pods that saw a poison record leave it to others; one of priority 0 would wait for an operator.
    exhaustions: priorities.every((priority) => priority > 0) ? random.int(4) : 0,
    commands: random.int(5),
    pauses: random.int(3),
    terminations: random.int(3),
    twins: random.pick([0, 0, 0, 1]),
    recreations: random.pick([0, 0, 0, 0, 0, 1]),
    emptyings: random.pick([0, 0, 0, 0, 0, 1]),
    mutes: random.pick([0, 0, 1, 2]),
    maintenances: random.pick([0, 0, 0, 1, 2]),
    update: random.chance(0.2),
  }
}
