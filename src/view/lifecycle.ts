/**
 * The lifecycle as one table of legal transitions and one function that makes them. History is bounded, newest first.
 */
import { EngineError } from '../base/errors.ts'
import type { LifecycleState, StateTransition } from './view.ts'

/** From each state, the states it may change to (`docs/guide/operations.md` shows the diagram made from this). */
export const transitions: Readonly<Record<LifecycleState, readonly LifecycleState[]>> = {
  CREATED: ['STARTING', 'STOPPING', 'FAILED'],
  STARTING: ['RESTORING', 'RUNNING', 'STANDBY', 'RESTARTING', 'STOPPING', 'FAILED'],
  RESTORING: ['RUNNING', 'PAUSED', 'STANDBY', 'RESTARTING', 'STOPPING', 'FAILED'],
  STANDBY: ['RESTORING', 'RUNNING', 'STOPPING', 'FAILED'],
  RUNNING: ['DRAINING', 'RESTORING', 'RESTARTING', 'STANDBY', 'STOPPING', 'FAILED'],
  DRAINING: ['PAUSED', 'RUNNING', 'RESTARTING', 'STANDBY', 'STOPPING', 'FAILED'],
  PAUSED: ['RUNNING', 'RESTORING', 'RESTARTING', 'STANDBY', 'STOPPING', 'FAILED'],
  RESTARTING: ['RESTORING', 'RUNNING', 'DRAINING', 'PAUSED', 'STANDBY', 'STOPPING', 'FAILED'],
  STOPPING: ['STOPPED', 'FAILED'],
  STOPPED: [],
  FAILED: ['STOPPING', 'STOPPED'],
}

/** In which the start is complete: the engine's thread is there, has reached the broker, and gives signs of life. */
export const startedStates: ReadonlySet<LifecycleState> = new Set([
  'RESTORING',
  'STANDBY',
  'RUNNING',
  'DRAINING',
  'PAUSED',
  'RESTARTING',
])

export const pausableStates: readonly LifecycleState[] = ['RUNNING']
export const unpausableStates: readonly LifecycleState[] = ['DRAINING', 'PAUSED']

/** Null where the state is one of those that allow it, and nothing else is in the way. */
export function whyNot(
  state: LifecycleState,
  allowed: readonly LifecycleState[],
  otherwise: string | null,
): string | null {
  if (allowed.includes(state)) return otherwise && `the state is still ${state}, but ${otherwise}`
  const retry = state === 'RESTARTING' ? '; retry when the restart is over' : ''
  return `the state is ${state}; possible in ${allowed.join(', ')}${retry}`
}

export class Lifecycle {
  #state: LifecycleState = 'CREATED'
  #since: number
  #history: StateTransition[] = []
  readonly #limit: number
  readonly #listener: (transition: StateTransition) => void

  constructor(now: number, historySize: number, listener: (transition: StateTransition) => void) {
    this.#since = now
    this.#limit = historySize
    this.#listener = listener
  }

  get state(): LifecycleState {
    return this.#state
  }

  get sinceMs(): number {
    return this.#since
  }

  get history(): readonly StateTransition[] {
    return this.#history
  }

  can(to: LifecycleState): boolean {
    return transitions[this.#state].includes(to)
  }

  /** Throws INVARIANT_BROKEN for a transition that the table does not have. Entering the same state is no transition. */
  transition(to: LifecycleState, now: number): void {
    const from = this.#state
    if (from === to) return
    if (!this.can(to)) throw new EngineError('INVARIANT_BROKEN', `the lifecycle cannot go from ${from} to ${to}`)
    const entry: StateTransition = { state: to, from, atMs: now }
    this.#state = to
    this.#since = now
    this.#history = [entry, ...this.#history].slice(0, this.#limit)
    this.#listener(entry)
  }
}
