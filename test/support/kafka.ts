/** A real Kafka for a test file, or the reason why there is none. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KafkaMissing, LocalKafka, type LocalKafkaOptions } from '../../scripts/kafka/local-kafka.ts'

export interface TestKafka {
  readonly bootstrap: string
  /** Controls of the broker; absent where the address came from the environment. */
  readonly broker?: LocalKafka
  /** Stops it and deletes its data, where it was started here. */
  stop(): Promise<void>
}

export interface NoKafka {
  readonly skip: string
}

/**
 * The cluster named by `KAFKA_BOOTSTRAP_SERVERS`, else a broker of its own. With `REQUIRE_KAFKA=1` a missing Kafka is
 * a failure. With `own` a broker is started in any case: for tests that stop it or need settings of their own.
 */
export async function kafkaForTests(
  options: Omit<LocalKafkaOptions, 'folder'> & { readonly own?: boolean } = {},
): Promise<TestKafka | NoKafka> {
  const given = process.env.KAFKA_BOOTSTRAP_SERVERS
  if (given && !options.own) return { bootstrap: given, stop: async () => undefined }
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kafka-'))
  try {
    const broker = await LocalKafka.start({ heap: '512m', ...options, folder })
    const endWithUs = (): void => {
      if (broker.pid !== undefined) process.kill(broker.pid, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    }
    process.once('exit', endWithUs)
    const stop = async (): Promise<void> => {
      process.removeListener('exit', endWithUs)
      await broker.kill()
      rmSync(folder, { recursive: true, force: true })
    }
    return { bootstrap: broker.bootstrap, broker, stop }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    if (!(error instanceof KafkaMissing) || process.env.REQUIRE_KAFKA === '1') throw error
    return { skip: error.message }
  }
}
