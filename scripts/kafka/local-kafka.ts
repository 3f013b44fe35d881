/**
 * A one-node Apache Kafka (KRaft) on the loopback interface, from the jars of Maven Central and the machine's JDK: for
 * the tests and for whoever wants to try the engine on a real Kafka without containers.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { cacheFolder } from '../cache-folder.ts'
import { freePorts } from '../free-ports.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'

const run = promisify(execFile)
const host = '127.0.0.1'
const clusterId = 'AAAAAAAAAAAAAAAAAAAAAQ'

/** Why there is no Kafka on this machine; one sentence with what to do. */
export class KafkaMissing extends Error {
  override readonly name = 'KafkaMissing'
}

export { cacheFolder }
const pom = join(import.meta.dirname, 'pom.xml')

export interface Credentials {
  readonly username: string
  readonly password: string
}

export interface LocalKafkaOptions {
  /** Where settings, log and data lie; kept when the broker stops. */
  readonly folder: string
  /** Free ports are chosen where none is given; the controller takes the next but one. */
  readonly port?: number
  /** Heap of the Java process, as in `512m`. */
  readonly heap?: string
  /** Level of the cluster's `transaction.version` feature (newest). */
  readonly transactionVersion?: number
  /** Adds a listener with SASL (PLAIN, SCRAM, OAUTHBEARER) and one with TLS, and refuses what no ACL allows there. */
  readonly secured?: Credentials
  /** Adds a listener that tells its clients to come by this port, behind which a proxy stands. */
  readonly proxyPort?: number
  /** Settings of the broker beyond the usual ones. */
  readonly settings?: Readonly<Record<string, string>>
  /** Leaves the broker running when this process ends. */
  readonly detached?: boolean
  /** One of several brokers: who all of them are. Ports that were chosen for it stand over `port`. */
  readonly member?: ClusterMember
}

export interface ClusterMember {
  readonly nodeId: number
  /** As in `1@127.0.0.1:9101,2@127.0.0.1:9201`. */
  readonly voters: string
  readonly ports: readonly number[]
}

/** Places in the list of a broker's ports. */
export const portsPerBroker = 5
export const controllerPortAt = 1
/** Three brokers that start beside other work on two cores take most of a minute. */
const longestStartMs = 180_000
/** Kafka itself waits for minutes for some of its threads, and for a day for others. */
const longestStopMs = 60_000

/** The jars' folder; fetched at first use. */
export async function kafkaJars(): Promise<string> {
  const version = /<kafka\.version>([^<]+)</.exec(readFileSync(pom, 'utf8'))?.[1] ?? 'unknown'
  const folder = join(cacheFolder, `kafka-${version}`)
  if (existsSync(join(folder, 'libs'))) return join(folder, 'libs')
  const fetched = `${folder}.${process.pid}`
  mkdirSync(fetched, { recursive: true })
  const args = ['-B', '-q', '-Dstyle.color=never', '-f', pom, 'dependency:copy-dependencies']
  try {
    await run('mvn', [...args, `-DoutputDirectory=${join(fetched, 'libs')}`], { maxBuffer: 1e8 })
    renameSync(fetched, folder)
  } catch (error) {
    rmSync(fetched, { recursive: true, force: true })
    // Another process may have been quicker.
    if (existsSync(join(folder, 'libs'))) return join(folder, 'libs')
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'Maven is not installed' : String(error)
    throw new KafkaMissing(`The jars of Kafka ${version} could not be fetched (${reason}); install Maven and a JDK.`)
  }
  return join(folder, 'libs')
}

export async function assertJava(): Promise<void> {
  try {
    const { stderr, stdout } = await run('java', ['-version'])
    const major = Number(/version "(\d+)/.exec(stderr + stdout)?.[1] ?? 0)
    if (major < 17) throw new KafkaMissing(`Java ${major} is too old for Kafka; install a JDK 17 or newer.`)
  } catch (error) {
    if (error instanceof KafkaMissing) throw error
    throw new KafkaMissing('Java is not installed; install a JDK 17 or newer.')
  }
}

type Ports = Readonly<Record<'plain' | 'controller' | 'sasl' | 'tls' | 'proxied', number>>

export class LocalKafka {
  readonly #options: LocalKafkaOptions
  readonly #jars: string
  readonly #ports: Ports
  #process: ChildProcess | undefined

  private constructor(options: LocalKafkaOptions, jars: string, ports: Ports) {
    this.#options = options
    this.#jars = jars
    this.#ports = ports
  }

  static async start(options: LocalKafkaOptions): Promise<LocalKafka> {
    await assertJava()
    const jars = await kafkaJars()
    const first = options.port
    const chosen = options.member?.ports
    const numbers =
      chosen ?? (first === undefined ? await freePorts(portsPerBroker) : [0, 1, 2, 3, 4].map((i) => first + i))
    const [plain, controller, sasl, tls, proxied] = numbers as [number, number, number, number, number]
    const ports = { plain, controller, sasl, tls, proxied }
    const kafka = new LocalKafka(options, jars, ports)
    await kafka.#prepare()
    await kafka.start()
    return kafka
  }

  get bootstrap(): string {
    return `${host}:${this.#ports.plain}`
  }

  get saslBootstrap(): string {
    return `${host}:${this.#ports.sasl}`
  }

  get tlsBootstrap(): string {
    return `localhost:${this.#ports.tls}`
  }

  /** PEM of the certificate that the TLS listener shows. */
  get certificate(): string {
    return readFileSync(join(this.#options.folder, 'certificate.pem'), 'utf8')
  }

  /** Where a proxy sends what arrives at `proxyPort`. */
  get proxiedPort(): number {
    return this.#ports.proxied
  }

  /** Where its settings, its log and, in `data`, its files are. */
  get folder(): string {
    return this.#options.folder
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  get jars(): string {
    return this.#jars
  }

  async start(): Promise<void> {
    const log = openSync(join(this.#options.folder, 'broker.log'), 'a')
    const args = [
      `-Xmx${this.#options.heap ?? '512m'}`,
      // A broker of a test lives for seconds; one that is left running may have to keep up with a benchmark.
      ...(this.#options.detached ? [] : ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']),
      ...this.#jvm(),
      'kafka.Kafka',
      this.#propertiesFile,
    ]
    const child = spawn('java', args, { stdio: ['ignore', log, log], detached: this.#options.detached ?? false })
    closeSync(log)
    if (this.#options.detached) child.unref()
    this.#process = child
    await this.#untilServing(child)
  }

  /** Its log so far, and what its Java process printed. */
  get log(): string {
    return readFileSync(join(this.#options.folder, 'broker.log'), 'utf8')
  }

  /** Clean stop. A broker that does not come to an end writes what its threads do into its log, and is ended hard. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** Hard stop, as a lost machine is. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Stands still with its sockets open, until `resume`. */
  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  /** Runs a class of the jars, as `kafka.tools.…`, and answers what it printed. */
  async tool(mainClass: string, args: readonly string[], input?: string): Promise<string> {
    const done = run('java', ['-Xmx256m', '-XX:TieredStopAtLevel=1', ...this.#jvm('error'), mainClass, ...args], {
      maxBuffer: 1e8,
    })
    if (input !== undefined) done.child.stdin?.end(input)
    return (await done).stdout
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    const late = sleep(longestStopMs, 'late' as const, { ref: false })
    if ((await Promise.race([ended, late])) === 'late') {
      child.kill('SIGQUIT')
      await sleep(2000)
      child.kill('SIGKILL')
    }
    await ended
    this.#process = undefined
  }

  get #propertiesFile(): string {
    return join(this.#options.folder, 'server.properties')
  }

  #jvm(level = 'warn'): string[] {
    return [`-Dorg.slf4j.simpleLogger.defaultLogLevel=${level}`, '-cp', `${this.#jars}/*`]
  }

  async #prepare(): Promise<void> {
    const { folder, secured, transactionVersion } = this.#options
    mkdirSync(folder, { recursive: true })
    if (secured) await this.#makeCertificate()
    const properties = Object.entries(this.#properties()).map(([key, value]) => `${key}=${value}`)
    writeFileSync(this.#propertiesFile, `${properties.join('\n')}\n`)
    if (existsSync(join(folder, 'data', 'meta.properties'))) return
    const args = ['format', '-t', clusterId, '-c', this.#propertiesFile]
    if (this.#options.member === undefined) args.push('--standalone')
    if (transactionVersion !== undefined) args.push('--feature', `transaction.version=${transactionVersion}`)
    if (secured) {
      for (const mechanism of ['SCRAM-SHA-256', 'SCRAM-SHA-512']) {
        args.push('--add-scram', `${mechanism}=[name=${secured.username},password=${secured.password}]`)
      }
    }
    await this.tool('kafka.tools.StorageTool', args)
  }

  #properties(): Record<string, string> {
    const { folder, secured, proxyPort, member } = this.#options
    const { plain, controller, sasl, tls, proxied } = this.#ports
    const more = secured ? `,SASL://${host}:${sasl},TLS://localhost:${tls}` : ''
    const viaProxy = (port: number | undefined): string => (proxyPort ? `,PROXIED://${host}:${port}` : '')
    return {
      'process.roles': 'broker,controller',
      'node.id': String(member?.nodeId ?? 1),
      ...(member
        ? { 'controller.quorum.voters': member.voters }
        : { 'controller.quorum.bootstrap.servers': `${host}:${controller}` }),
      listeners: `PLAINTEXT://${host}:${plain},CONTROLLER://${host}:${controller}${more}${viaProxy(proxied)}`,
      'advertised.listeners': `PLAINTEXT://${host}:${plain}${more}${viaProxy(proxyPort)}`,
      'controller.listener.names': 'CONTROLLER',
      'inter.broker.listener.name': 'PLAINTEXT',
      'listener.security.protocol.map':
        'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL',
      'log.dirs': join(folder, 'data'),
      'log.retention.ms': '-1',
      'auto.create.topics.enable': 'false',
      'num.partitions': '4',
      'offsets.topic.num.partitions': '4',
      'offsets.topic.replication.factor': '1',
      'transaction.state.log.num.partitions': '4',
      'transaction.state.log.replication.factor': '1',
      'transaction.state.log.min.isr': '1',
      'group.initial.rebalance.delay.ms': '0',
      'log.cleaner.dedupe.buffer.size': '16777216',
      ...(secured ? this.#securityProperties(secured) : {}),
      ...this.#options.settings,
    }
  }

  #securityProperties({ username, password }: Credentials): Record<string, string> {
    const modules = 'org.apache.kafka.common.security'
    const jaas = (mechanism: string, entry: string): Record<string, string> => ({
      [`listener.name.sasl.${mechanism}.sasl.jaas.config`]: `${modules}.${entry};`,
    })
    return {
      'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
      ...jaas('plain', `plain.PlainLoginModule required user_${username}="${password}"`),
      ...jaas('scram-sha-256', 'scram.ScramLoginModule required'),
      ...jaas('scram-sha-512', 'scram.ScramLoginModule required'),
      ...jaas('oauthbearer', `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="${username}"`),
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      'super.users': 'User:ANONYMOUS',
      'ssl.keystore.location': join(this.#options.folder, 'keystore.p12'),
      'ssl.keystore.type': 'PKCS12',
      'ssl.keystore.password': 'changeit',
      'ssl.key.password': 'changeit',
    }
  }

  async #makeCertificate(): Promise<void> {
    const { folder } = this.#options
    const keystore = join(folder, 'keystore.p12')
    if (existsSync(keystore)) return
    const store = ['-keystore', keystore, '-storetype', 'PKCS12', '-storepass', 'changeit', '-alias', 'broker']
    const names = 'SAN=dns:localhost,ip:127.0.0.1'
    await run('keytool', ['-genkeypair', '-keyalg', 'EC', '-dname', 'CN=localhost', '-ext', names, ...store])
    await run('keytool', ['-exportcert', '-rfc', '-file', join(folder, 'certificate.pem'), ...store])
  }

  async #untilServing(child: ChildProcess): Promise<void> {
    const client = connectKafka({ bootstrapServers: [this.bootstrap], clientId: 'local-kafka', firstContactMs: 500 })
    try {
      const deadline = performance.now() + longestStartMs
      while (performance.now() < deadline) {
        if (child.exitCode !== null || child.signalCode !== null) break
        const answered = client.topics(null).then(
          () => true,
          () => false,
        )
        // A broker that takes the connection and has no quorum yet may leave a question unanswered.
        if (await Promise.race([answered, sleep(10_000, false, { ref: false })])) return
        await sleep(100)
      }
    } finally {
      await client.close()
    }
    child.kill('SIGKILL')
    throw new KafkaMissing(`Kafka did not start on ${this.bootstrap}; the end of its log:\n${this.log.slice(-4000)}`)
  }
}
