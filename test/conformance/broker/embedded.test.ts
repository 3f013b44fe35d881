import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.ts'
import { Random } from '../../../src/base/random.ts'
import { ClusterTimer } from '../../../src/broker/embedded/cluster-timer.ts'
import { EmbeddedCluster } from '../../../src/broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../../../src/broker/embedded/core/memory-storage.ts'
import { directClient } from '../../../src/broker/embedded/direct-client.ts'
import { startEmbeddedBroker } from '../../../src/broker/embedded/start.ts'
import { type BrokerUnderTest, runBrokerSuite } from './suite.ts'

const shortSession = { shortSessionMs: 200 }

async function direct(): Promise<BrokerUnderTest> {
  const options = { clock: systemClock, random: new Random(7), storage: new MemoryStorage(), partitions: 4 }
  const cluster = new EmbeddedCluster(options)
  const timer = new ClusterTimer(cluster, systemClock)
  // The timer does not keep the process alive, and here nothing else does.
  const alive = setInterval(() => undefined, 1000)
  return {
    connect: async () => directClient(cluster, { afterCall: () => timer.arm() }),
    close: async () => {
      clearInterval(alive)
      timer.stop()
      cluster.close()
    },
  }
}

async function threaded(folder?: string): Promise<BrokerUnderTest> {
  const broker = await startEmbeddedBroker({ partitions: 4, ...(folder !== undefined && { folder }) })
  return {
    connect: async () => broker.client(),
    close: async () => {
      await broker.close()
      if (folder !== undefined) rmSync(folder, { recursive: true })
    },
  }
}

runBrokerSuite('embedded, called directly', direct, shortSession)
runBrokerSuite('embedded, over a message port', () => threaded(), shortSession)
runBrokerSuite('embedded, in a folder', () => threaded(mkdtempSync(join(tmpdir(), 'broker-'))), shortSession)
