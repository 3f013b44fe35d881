/**
 * As `moving-partitions.ts`, with partitions that are silent at times for longer than they are waited for. What they bring behind that
 * is in time: it is of the time at which it is written, however long it takes until somebody reads it.
 */
import { Upstream } from '../../src/engine/input/repartition/upstream.ts'
import { type Broken, replaced } from './level-order.ts'
import { runSeed as runGroup } from './moving-partitions.ts'

export const mutants: readonly Broken[] = [
  {
    name: 'idle-by-the-last-commit',
    // What a commit has said of a partition holds until the next one, whatever has come to it meanwhile.
    breaks: () =>
      replaced(Upstream.prototype, 'isIdle', {
        value: (...[key, { committed }]: Parameters<Upstream['isIdle']>) => committed.get(key)?.idle === true,
      }),
  },
]

export const runSeed = (seed: number, mutant?: Broken): ReturnType<typeof runGroup> => runGroup(seed, mutant, 'silent')
