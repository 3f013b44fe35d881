/** Writes rows in blocks, says so, and asks for them in the order of their keys; is killed by its test meanwhile. */
import { lmdbBackends } from '../../src/state/backends.ts'
import { keyBytes } from '../../src/state/rows/bytes.ts'
import type { StoreLifecycle, TimestampedKeyValueStore } from '../../src/state/contract.ts'
import { WriteBehind } from '../../src/state/backends/write-behind.ts'
import { checkpointAt } from '../unit/state/backend-suite.ts'
import { open, specOf } from '../unit/state/store-suite.ts'

const [dir = '', rows = '0'] = process.argv.slice(2)
const factory = lmdbBackends({
  dir,
  applicationId: 'killed',
  onQuarantine: (_folder, reason) => process.stderr.write(`set aside: ${reason}\n`),
})
const below = factory.open('numbers', 0)
if (below.checkpoint() === undefined) {
  const behind = new WriteBehind(below)
  const store = open<TimestampedKeyValueStore<string, number> & StoreLifecycle>(specOf({}), behind)
  for (let n = 0; n < Number(rows); n++) store.put(`key-${n}`, n, 1)
  store.seal(1)
  store.applied(1, checkpointAt(1))
  behind.writeAll()
}
process.stdout.write(`written ${below.inHashOrder}\n`)
for (const [key] of below.range(keyBytes('key-5'), undefined)) {
  process.stdout.write(`walks ${Buffer.from(key)}\n`)
  break
}
// Nobody ends it but its test.
setInterval(() => undefined, 1000)
