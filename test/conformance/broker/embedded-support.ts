import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { type ClusterOptions, EmbeddedCluster } from '../../../src/broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../../../src/broker/embedded/core/memory-storage.ts'
import { directClient } from '../../../src/broker/embedded/direct-client.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'

export interface Direct {
  readonly clock: VirtualClock
  readonly cluster: EmbeddedCluster
  readonly client: EmbeddedClient
}

/** A cluster in this thread whose time stands still until it is moved. */
export function directCluster(options: Partial<ClusterOptions> = {}): Direct {
  const clock = new VirtualClock(1_000_000)
  const storage = options.storage ?? new MemoryStorage()
  const cluster = new EmbeddedCluster({ clock, random: new Random(3), partitions: 4, ...options, storage })
  return { clock, cluster, client: directClient(cluster) }
}

/** A folder in memory where there is such a thing: for tests that write so much that a disk would hold them up. */
export function fastFolder(context: TestContext): string {
  return temporaryFolder(context, existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
}

/** A folder that is gone after the test. */
export function temporaryFolder(context: TestContext, within = tmpdir()): string {
  const folder = mkdtempSync(join(within, 'broker-'))
  context.after(() => {
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}
