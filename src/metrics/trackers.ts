/** Counts what happened between two looks at a bounded list: the history of states. */
import type { StateSnapshot, StateTransition } from '../view/view.ts'
import type { Sample } from './table-types.ts'

/** Entries of a newest-first list that came after the one seen last, oldest first. */
function since<T>(list: readonly T[], isLast: (entry: T) => boolean): T[] {
  const at = list.findIndex(isLast)
  return (at < 0 ? [...list] : list.slice(0, at)).reverse()
}

export class TransitionTracker {
  readonly #counts = new Map<string, { from: string; to: string; count: number }>()
  #last: StateTransition | undefined

  look({ history }: StateSnapshot): void {
    const last = this.#last
    const isLast = (entry: StateTransition): boolean =>
      last !== undefined && entry.atMs === last.atMs && entry.state === last.state && entry.from === last.from
    for (const { from, state } of since(history, isLast)) {
      const counted = this.#counts.get(`${from} ${state}`) ?? { from, to: state, count: 0 }
      counted.count++
      this.#counts.set(`${from} ${state}`, counted)
    }
    this.#last = history[0] ?? last
  }

  samples(): Sample[] {
    return [...this.#counts.values()].map(({ from, to, count }) => ({ labels: { from, to }, value: count }))
  }
}
