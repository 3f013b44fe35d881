/** Several brokers of one Apache Kafka on the loopback interface, each of which also has a voice in the quorum. */
import { join } from 'node:path'
import { freePorts } from '../free-ports.ts'
import {
  assertJava,
  controllerPortAt,
  kafkaJars,
  LocalKafka,
  type LocalKafkaOptions,
  portsPerBroker,
} from './local-kafka.ts'

export interface LocalClusterOptions extends Omit<LocalKafkaOptions, 'member' | 'proxyPort' | 'secured' | 'port'> {
  readonly brokers: number
  /** First of a row of ports; free ones are chosen where none is given. */
  readonly port?: number
}

export class LocalCluster {
  readonly brokers: readonly LocalKafka[]
  readonly jars: string

  private constructor(brokers: readonly LocalKafka[], jars: string) {
    this.brokers = brokers
    this.jars = jars
  }

  /** With three brokers or more every topic has three replicas, of which two must have a record. */
  static async start({ brokers, port, ...options }: LocalClusterOptions): Promise<LocalCluster> {
    await assertJava()
    const jars = await kafkaJars()
    const count = brokers * portsPerBroker
    const ports = port === undefined ? await freePorts(count) : Array.from({ length: count }, (_, i) => port + i)
    const portsOf = (index: number): number[] => ports.slice(index * portsPerBroker, (index + 1) * portsPerBroker)
    const voters = Array.from({ length: brokers }, (_, i) => `${i + 1}@127.0.0.1:${portsOf(i)[controllerPortAt]}`)
    const replicas = String(Math.min(3, brokers))
    const inSync = String(Math.min(2, brokers))
    const settings = {
      'default.replication.factor': replicas,
      'min.insync.replicas': inSync,
      'offsets.topic.replication.factor': replicas,
      'transaction.state.log.replication.factor': replicas,
      'transaction.state.log.min.isr': inSync,
      // A lost broker is noticed soon, and a replica that is behind is soon no longer waited for.
      'broker.session.timeout.ms': '3000',
      'broker.heartbeat.interval.ms': '500',
      'replica.lag.time.max.ms': '3000',
      ...options.settings,
    }
    const started = Array.from({ length: brokers }, (_, i) =>
      LocalKafka.start({
        ...options,
        settings,
        folder: join(options.folder, `broker-${i + 1}`),
        member: { nodeId: i + 1, voters: voters.join(','), ports: portsOf(i) },
      }),
    )
    return new LocalCluster(await Promise.all(started), jars)
  }

  get bootstrap(): string {
    return this.brokers.map((broker) => broker.bootstrap).join(',')
  }

  get pids(): number[] {
    return this.brokers.map(({ pid }) => pid).filter((pid) => pid !== undefined)
  }

  async kill(): Promise<void> {
    await Promise.all(this.brokers.map((broker) => broker.kill()))
  }
}
