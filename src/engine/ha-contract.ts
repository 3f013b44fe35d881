/**
 * What the coordinator of high availability (`../ha`, control thread) asks of the engine, and what the engine tells it.
 * The coordinator decides who should run; whether data is right rests on the transaction coordinator's fencing alone,
 * which the engine does (`ARCHITECTURE.md`, high availability).
 *
 * A promotion: `ha-promote` → the engine takes the producer's identity, fencing its predecessor → `identity-taken` →
 * the coordinator verifies that no newer claim exists → `ha-proceed` → the engine takes the group's place, follows the
 * changelogs to their ends, reads the offsets, commits once to prove the fence → `running`.
 */
import type { WireError } from '../base/errors.ts'

export interface RecordPlace {
  readonly topic: string
  readonly partition: number
  readonly offset: number
}

/** How far the stores of a standby are. */
export interface StandbyProgress {
  /** All stores are open and are followed. */
  readonly open: boolean
  /** Records of the changelogs that are committed and not yet in the own stores. */
  readonly lagRecords: number
  /** Age of the newest moment whose stable ends the stores have reached; no clock but the own one counts. */
  readonly lagMs: number
  /** Age of the last answer of the broker that reached the ends, milliseconds. */
  readonly freshnessMs: number
}

/** Commands, beside those of `protocol.ts`. */
export type HaCommandToEngine =
  | { readonly type: 'ha-promote'; readonly tokenEpoch: number; readonly paused: boolean }
  | { readonly type: 'ha-proceed'; readonly tokenEpoch: number }
  /** Drain, commit, give the producer up without leaving the group; then follow as a standby. Answered by `handed-over`. */
  | { readonly type: 'ha-hand-over'; readonly id: number }
  /** Somebody else runs, or a promotion is off: what is not committed is void; follow as a standby. Answered by `standby`. */
  | { readonly type: 'ha-step-down'; readonly reason: string }
  /** While isolated nothing is dispatched and nothing committed. */
  | { readonly type: 'ha-isolate'; readonly isolated: boolean }
  /** Answer to `verify-token`: with `held` the engine goes on, else `ha-step-down` follows. */
  | { readonly type: 'ha-token'; readonly id: number; readonly held: boolean }
  /** Nobody can take over: fail with the error that was told by `restarts-exhausted`. */
  | { readonly type: 'ha-fail' }

/** Facts, beside those of `protocol.ts`. `running`, `restarting`, `failed` mean what they mean without high availability. */
export type HaFact =
  /** The engine follows its changelogs, its stores are open: at the start, and after a hand-over or a step-down. */
  | { readonly type: 'standby' }
  /** It processes nothing any more, and is about to follow: its stores are yet to be opened, which `standby` tells. */
  | { readonly type: 'role-given-up' }
  /** After a step-down: nothing of the run is processed or committed any more. Its stores are yet to be opened, as above. */
  | { readonly type: 'stepped-down' }
  | { readonly type: 'standby-progress'; readonly progress: StandbyProgress }
  /** Stores wait for room on the disk (the sentence says which), whatever the role; or do no longer (null). */
  | { readonly type: 'disk-full'; readonly sentence: string | null }
  | { readonly type: 'identity-taken'; readonly tokenEpoch: number }
  | {
      readonly type: 'handed-over'
      readonly id: number
      readonly commitId: string
      /** End of every changelog partition behind the last commit, by `topic/partition`. */
      readonly changelogEnds: Readonly<Record<string, number>>
    }
  /** Before the engine takes its identity again (in-place restart, a commit whose outcome is unknown). */
  | { readonly type: 'verify-token'; readonly id: number }
  /** An active engine committed; told at most a few times a second. */
  | { readonly type: 'committed'; readonly commitId: string }
  /** The restart budget is spent; the engine stands still and waits for `ha-step-down` or `ha-fail`. */
  | { readonly type: 'restarts-exhausted'; readonly error: WireError; readonly place: RecordPlace | null }
  /** A record made the engine restart; travels with status and release, so that a poison record stops at the second pod. */
  | { readonly type: 'fault-seen'; readonly place: RecordPlace }
