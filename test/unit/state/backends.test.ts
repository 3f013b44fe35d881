import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { backendSuite } from './backend-suite.ts'
import { storeSuite } from './store-suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-state-'))
const durable = lmdbBackends({ dir, applicationId: 'suite', maxStores: 4000 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

const openLmdb = () => durable.open(`store-${stores++ % 2000}`, 0)
backendSuite('memory', () => new MemoryBackend())
backendSuite('lmdb', openLmdb)
backendSuite('write-behind', () => new WriteBehind(openLmdb()))
storeSuite('memory', () => new MemoryBackend(), 150)
storeSuite('lmdb', openLmdb, 40)
storeSuite('write-behind', () => new WriteBehind(openLmdb()), 80)
