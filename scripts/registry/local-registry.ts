/**
 * An Apicurio Registry on the loopback interface, from Maven Central and the machine's JDK: a real schema registry with
 * Confluent's interface for the tests and for whoever wants to try the engine on one. What it holds ends with it.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../free-ports.ts'
import { assertJava, cacheFolder } from '../kafka/local-kafka.ts'

const run = promisify(execFile)
const version = '3.0.9'
const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
const pom = join(import.meta.dirname, 'pom.xml')
const host = '127.0.0.1'
/** A start beside other work on two cores takes most of a minute. */
const longestStartMs = 180_000

export interface LocalRegistryOptions {
  /** A free one is chosen where none is given. */
  readonly port?: number
  /** Leaves the registry running when this process ends. */
  readonly detached?: boolean
}

/** The folder with the program and its libraries; fetched at first use. */
export async function registryFolder(): Promise<string> {
  const folder = join(cacheFolder, `apicurio-registry-${version}`)
  if (existsSync(folder)) return folder
  const fetched = `${folder}.${process.pid}`
  mkdirSync(fetched, { recursive: true })
  try {
    const copy = ['-B', '-q', '-Dstyle.color=never', 'dependency:copy']
    await run('mvn', [...copy, `-Dartifact=${artifact}`, `-DoutputDirectory=${fetched}`], {
      maxBuffer: 1e8,
      cwd: fetched,
    })
    const archive = join(fetched, `apicurio-registry-app-${version}-all.tar.gz`)
    await run('tar', ['xzf', archive, '-C', fetched])
    rmSync(archive)
    renameSync(fetched, folder)
  } catch (error) {
    rmSync(fetched, { recursive: true, force: true })
    // Another process may have been quicker.
    if (!existsSync(folder)) throw error
  }
  return folder
}

/**
 * The jars with which a program on the JVM writes and reads records of the registry, and Kafka's clients; fetched at first
 * use. They are of the generation before the registry's own, whose jars Maven Central does not hold in full.
 */
export async function serializerJars(): Promise<string> {
  const wanted = /<serdes\.version>([^<]+)</.exec(readFileSync(pom, 'utf8'))?.[1] ?? 'unknown'
  const folder = join(cacheFolder, `registry-serdes-${wanted}`)
  if (existsSync(folder)) return folder
  const fetched = `${folder}.${process.pid}`
  const args = ['-B', '-q', '-Dstyle.color=never', '-f', pom, 'dependency:copy-dependencies']
  try {
    await run('mvn', [...args, `-DoutputDirectory=${fetched}`], { maxBuffer: 1e8 })
    renameSync(fetched, folder)
  } catch (error) {
    rmSync(fetched, { recursive: true, force: true })
    // Another process may have been quicker.
    if (!existsSync(folder)) throw error
  }
  return folder
}

export class LocalRegistry {
  readonly url: string
  readonly pid: number | undefined
  /** Where the libraries lie: among them Avro's and Protobuf's own for Java. */
  readonly jars: string
  readonly #process: ChildProcess

  private constructor(url: string, jars: string, child: ChildProcess) {
    this.url = url
    this.jars = jars
    this.pid = child.pid
    this.#process = child
  }

  /** @throws KafkaMissing where there is no Java. */
  static async start({ port, detached = false }: LocalRegistryOptions = {}): Promise<LocalRegistry> {
    await assertJava()
    const folder = await registryFolder()
    const at = port ?? (await freePort())
    const log = openSync(join(folder, `${at}.log`), 'w')
    const settings = [`-Dquarkus.http.port=${at}`, `-Dquarkus.http.host=${host}`]
    const args = ['-Xmx320m', '-XX:+UseSerialGC', ...settings, '-jar', `apicurio-registry-app-${version}-runner.jar`]
    const child = spawn('java', args, { cwd: folder, detached, stdio: ['ignore', log, log] })
    closeSync(log)
    if (detached) child.unref()
    const registry = new LocalRegistry(`http://${host}:${at}/apis/ccompat/v7`, join(folder, 'lib'), child)
    try {
      await registry.#answers()
    } catch (error) {
      await registry.stop()
      throw error
    }
    return registry
  }

  async #answers(): Promise<void> {
    const until = performance.now() + longestStartMs
    while (performance.now() < until) {
      if (this.#process.exitCode !== null) throw new Error('the registry ended while it started; see its log')
      try {
        if ((await fetch(`${this.url}/subjects`, { signal: AbortSignal.timeout(5000) })).ok) return
      } catch {
        // It does not listen yet.
      }
      await sleep(300)
    }
    throw new Error(`the registry did not answer within ${longestStartMs} ms`)
  }

  async stop(): Promise<void> {
    const child = this.#process
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }
}
