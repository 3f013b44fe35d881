/** A cluster of three brokers for a test file, or why there is none. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LocalCluster } from '../../scripts/kafka/local-cluster.ts'
import { KafkaMissing } from '../../scripts/kafka/local-kafka.ts'

export interface ThreeBrokers {
  /** Not to be used where the tests are skipped. */
  readonly cluster: LocalCluster
  readonly skip: string | false
  end(): Promise<void>
}

export async function threeBrokers(): Promise<ThreeBrokers> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-cluster-'))
  const forget = (): void => rmSync(folder, { recursive: true, force: true })
  const cluster = await LocalCluster.start({ folder, brokers: 3, heap: '320m' }).catch((error: unknown) => {
    forget()
    if (!(error instanceof KafkaMissing) || process.env.REQUIRE_KAFKA === '1') throw error
    return error.message
  })
  if (typeof cluster === 'string') return { cluster: undefined as never, skip: cluster, end: async () => undefined }
  const killAll = (): void => {
    for (const pid of cluster.pids) process.kill(pid, 'SIGKILL')
  }
  process.once('exit', killAll)
  const end = async (): Promise<void> => {
    await cluster.kill()
    process.removeListener('exit', killAll)
    forget()
  }
  return { cluster, skip: false, end }
}
