import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lmdbBackends } from '../../src/state/backends.ts'
import { MemoryBackend } from '../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../src/state/backends/write-behind.ts'
import { backendSuite } from '../unit/state/backend-suite.ts'
import { storeSuite } from '../unit/state/store-suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-state-'))
const durable = lmdbBackends({ dir, applicationId: 'suite', maxStores: 4000 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

test('stores that belong to another runtime by now are written no more, and read as they are', () => {
  let isAbandoned = false
  const backends = lmdbBackends({ dir, applicationId: 'abandoned', isAbandoned: () => isAbandoned })
  const backend = backends.open('store', 0)
  const [key, before, later] = [Buffer.from('a'), Buffer.from('1'), Buffer.from('2')]
  backend.apply([[key, before]], { changelogOffset: 1, commitId: '1.1', topicId: '' })
  isAbandoned = true
  assert.throws(() => backend.apply([[key, later]], { changelogOffset: 2, commitId: '1.2', topicId: '' }), {
    code: 'STORE_LOCKED',
  })
  assert.throws(() => backend.wipe(), { code: 'STORE_LOCKED' })
  assert.equal(backend.checkpoint()?.changelogOffset, 1)
  assert.deepEqual(
    [...backend.range(new Uint8Array(0), Buffer.from([255]))].map(([, value]) => Buffer.from(value).toString()),
    ['1'],
  )
  backends.close()
})

const openLmdb = () => durable.open(`store-${stores++ % 2000}`, 0)
backendSuite('memory', () => new MemoryBackend())
backendSuite('lmdb', openLmdb)
backendSuite('write-behind', () => new WriteBehind(openLmdb()))
storeSuite('memory', () => new MemoryBackend(), 150)
storeSuite('lmdb', openLmdb, 40)
storeSuite('write-behind', () => new WriteBehind(openLmdb()), 80)
