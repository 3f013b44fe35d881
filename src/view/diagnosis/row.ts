import type { Facts } from './facts.ts'
import type { Found, Severity } from './finding.ts'

/** One standstill: everything that is known of it in one place. The guide's page is made from it. */
export interface StandstillRow {
  /** Never used again for something else. */
  readonly code: string
  readonly severity: Severity
  readonly title: string
  /** When it is found, in words. */
  readonly when: string
  /** Codes of what it brings about: those are effects wherever this one is found. */
  readonly explains: readonly string[]
  readonly next: string
  /** What to do where another finding explains it, behind the words that say so. */
  readonly nextBehind?: string
  /** What it advises is done without a restart of this process, though it speaks of one, or of a setting. */
  readonly withoutRestart?: true
  /** More for the guide. */
  readonly guide?: string
  /** Pure: every place at which it is so. `behind`: something was found that brings this about. */
  readonly find: (facts: Facts, now: number, behind: boolean) => readonly Found[]
}

/** States in which records are meant to go through. */
export function isMeantToRun({ state }: Facts): boolean {
  return state === 'RUNNING' || state === 'DRAINING' || state === 'RESTARTING'
}

/** The engine does nothing any more: what it showed last of its exchanges with the broker is past, and grows no older. */
export function hasEnded({ state, failure }: Facts): boolean {
  return state === 'FAILED' || state === 'STOPPED' || (state === 'STOPPING' && failure !== null)
}

/** For how long something has been waited for, in time in which this process could have seen the end of it. */
export function waitedMs({ wokeMs }: Pick<Facts, 'wokeMs'>, sinceMs: number, now: number): number {
  return now - Math.max(sinceMs, wokeMs ?? sinceMs)
}

/** An exchange goes through several threads, and each of them may wait as long for a processor as this one does. */
export const hopsOfACommit = 10
export const hourMs = 3_600_000
/** What stops with everything else. */
export const everythingBehind = [
  'BUFFER_FULL',
  'WATERMARK_HELD',
  'ALIGNMENT_HELD',
  'COMMITS_SLOW',
  'COMMIT_UNANSWERED',
  'RESTARTS',
]
