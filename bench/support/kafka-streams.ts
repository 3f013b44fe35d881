/** Kafka Streams beside Millrace: its jars from Maven Central, and `Beside.java` compiled with the machine's JDK. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const sources = join(import.meta.dirname, '..', 'kafka-streams')
const cache = process.env.MILLRACE_CACHE ?? join(homedir(), '.cache', 'millrace')

/** The words that start `Beside`; fetched and compiled at first use. */
export async function kafkaStreamsCommand(): Promise<string[]> {
  const pom = join(sources, 'pom.xml')
  const source = join(sources, 'Beside.java')
  const folder = join(cache, `kafka-streams-${digestOf(pom)}`)
  const libs = join(folder, 'libs')
  await made(libs, async (target) => {
    const words = ['-B', '-q', '-Dstyle.color=never', '-f', pom, 'dependency:copy-dependencies']
    await run('mvn', [...words, `-DoutputDirectory=${target}`], { maxBuffer: 1e8 })
  })
  const classes = join(folder, `classes-${digestOf(source)}`)
  await made(classes, async (target) => {
    await run('javac', ['-nowarn', '-Xlint:none', '-d', target, '-cp', join(libs, '*'), source])
  })
  // The parallel collector needs the least CPU of a machine with two cores.
  const jvm = ['-Xmx1g', '-XX:+UseParallelGC', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error']
  return ['java', ...jvm, '-cp', `${classes}:${join(libs, '*')}`, 'Beside']
}

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 10)

/** Makes a folder in one step, so that what was interrupted is never taken for whole. */
async function made(folder: string, fill: (target: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return
  const target = `${folder}.${process.pid}`
  mkdirSync(target, { recursive: true })
  try {
    await fill(target)
    renameSync(target, folder)
  } catch (error) {
    rmSync(target, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}
