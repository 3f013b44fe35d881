/** Writes changelogs from stores: all of them in one transaction, so that a crash leaves none of it. */
import type { Clock } from '../../base/clock.ts'
import type { FromLane } from '../../lanes/protocol.ts'
import type { Producer } from '../commit/producer.ts'
import { unpack } from '../commit/producer.ts'
import type { EngineSettings } from '../settings.ts'
import type { StoreReplay } from './store-replay.ts'

type Dumped = Extract<FromLane, { type: 'dumped' }>

export async function writeAnew(
  host: { producer(): Producer; readonly clock: Clock; readonly settings: Pick<EngineSettings, 'guarantee'> },
  stores: readonly StoreReplay[],
  dump: (store: StoreReplay, from: Uint8Array | null) => Promise<Dumped>,
): Promise<void> {
  const producer = host.producer()
  // What an attempt before has left is void: a broker that did not answer knows nothing of it from here on.
  await producer.init(host.settings.guarantee === 'exactly-once')
  for (const store of stores) {
    let from: Uint8Array | null = null
    let next = 0
    do {
      const { packs, next: rest }: Dumped = await dump(store, from)
      const { topic, partition } = store
      const batches = unpack(packs).map((batch) => ({ ...batch, topic, partition }))
      producer.send(batches, host.clock.monotonic(), ({ count }, offset) => {
        next = Math.max(next, offset + count)
      })
      await producer.flush()
      from = rest
    } while (from !== null)
    store.writtenUpTo(next)
  }
  await producer.end(true)
}
