/** Which process of the group has a key, where this one has no row of it. */
import { keySlot } from '../../base/hash.ts'
import type { Refused } from '../../http/data-seam.ts'
import { keyOfText } from '../../serde/shown.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { GroupPlaces } from '../../view/view.ts'

/** Undefined: the key belongs here, and there is no such row. */
export function elsewhere(
  topology: CompiledTopology,
  places: GroupPlaces | null,
  store: string,
  text: string,
): Refused | undefined {
  const spec = topology.stores.get(store)
  const key = spec && keyOfText(spec.keySerde, text)
  if (spec === undefined || key === undefined || topology.globalStores.has(store)) return undefined
  if (places === null) {
    return { refused: 503, reason: 'this process has no place in its group yet, so it knows no owner; retry soon' }
  }
  const slot = keySlot(spec.keySerde.serialize(key.key))
  const tasks = topology.subtopologies
    .filter(({ stores }) => stores.includes(store))
    .map(({ id }) => `${id}_${slot % (places.tasks[id] ?? 1)}`)
  if (tasks.some((task) => places.own.includes(task))) return undefined
  const owner = places.others.find((other) => tasks.some((task) => other.tasks.includes(task)))
  const task = tasks.join(', ')
  if (typeof owner?.address === 'string') {
    const reason = `another process of the group has the task ${task} of this key: ask ${owner.address}`
    return { refused: 421, reason, address: owner.address }
  }
  if (owner !== undefined || (!places.isTold && places.others.length > 0)) {
    const how = 'runtime.http.advertised-address, set in every process, tells where'
    return { refused: 421, reason: `another process of the group has the task ${task} of this key; ${how}` }
  }
  return { refused: 503, reason: `the task ${task} of this key is being given to another process; retry soon` }
}
