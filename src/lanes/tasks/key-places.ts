/** Whether what a source topic brings back as changelog lies where the engine looks for it. */
import { keySlot } from '../../base/hash.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { misplacedKey } from '../../topology/keys/misplaced-key.ts'
import type { Place } from '../stores/restore.ts'

/** Throws at a record of another task. Undefined: the store wrote its changelog itself. */
export function keyPlaces(
  { name, changelogTopic }: StoreSpec,
  partition: number,
  { subtopologies }: CompiledTopology,
  affinity: Affinity,
): ((place: Place) => void) | undefined {
  if (changelogTopic === undefined) return undefined
  const subtopology = subtopologies.findIndex(({ stores }) => stores.includes(name))
  return ({ bytes, keyStart, keyEnd, offset }) => {
    const task = affinity.task(subtopology, keySlot(bytes, keyStart, keyEnd), partition)
    if (task !== partition) throw misplacedKey(changelogTopic, partition, offset, task)
  }
}
