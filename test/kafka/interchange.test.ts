/**
 * Millrace and a program on the JVM on one Kafka and one registry: values at random go from Millrace's serdes to the JVM, which
 * writes them with serializers of Java; an application on Millrace reads those and writes them again; the JVM compares.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import fc from '../support/properties.ts'
import { KafkaMissing } from '../../scripts/kafka/local-kafka.ts'
import { LocalRegistry, serializerJars } from '../../scripts/registry/local-registry.ts'
import { systemClock } from '../../src/base/clock.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { startRuntime } from '../../src/runtime/index.ts'
import { RegistryClient } from '../../src/serde/registry/client.ts'
import { SchemaHub } from '../../src/serde/registry/hub.ts'
import { SchemaStore } from '../../src/serde/registry/schema-store.ts'
import { httpTransport } from '../../src/serde/registry/transport.ts'
import type { Serde } from '../../src/serde/serde.ts'
import { consumeAs, produce } from '../engine/support/engine.ts'
import { whenKnown } from '../../src/serde/when-known.ts'
import { eventually } from '../support/millrace.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'

const prefix = `interchange-${process.pid}`
process.env.INTERCHANGE_PREFIX = prefix
const { exchanged } = await import('./registry/interchange-app.ts')

const run = promisify(execFile)
const each = Number(process.env.INTERCHANGE_RECORDS ?? 20)
const seed = Number(process.env.INTERCHANGE_SEED ?? (Date.now() ^ process.pid) & 0x7fffffff)

async function registryForTests(): Promise<LocalRegistry | { readonly skip: string }> {
  try {
    return await LocalRegistry.start()
  } catch (error) {
    if (!(error instanceof KafkaMissing) || process.env.REQUIRE_KAFKA === '1') throw error
    return { skip: error.message }
  }
}

const kafka = await kafkaForTests()
const registry = 'skip' in kafka ? kafka : await registryForTests()
const skip = 'skip' in registry ? registry.skip : false

/** By topic, the messages of Protobuf as JSON, each with the name of its type. */
function toldByJava(out: string): Map<string, unknown[]> {
  const told = new Map<string, unknown[]>()
  for (const [, topic = '', text = ''] of out.matchAll(/^value (\S+) (\S+)$/gm)) {
    const [, $typeName, json = ''] = /^(\S+) (.*)$/s.exec(Buffer.from(text, 'base64').toString()) ?? []
    told.set(topic, [...(told.get(topic) ?? []), { ...(JSON.parse(json) as object), $typeName }])
  }
  return told
}

describe('records between Millrace and the JVM', { skip }, () => {
  const local = registry as LocalRegistry
  const { bootstrap } = kafka as TestKafka
  const folder = mkdtempSync(join(tmpdir(), 'millrace-interchange-'))
  let jars = ''
  before(async () => {
    jars = await serializerJars()
    const source = join(import.meta.dirname, 'registry', 'KafkaInterchange.java')
    await run('javac', ['-nowarn', '-cp', `${jars}/*`, '-d', folder, source])
  })
  after(async () => {
    await local.stop()
    await (kafka as TestKafka).stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function connected(serde: Serde<unknown>, topic: string): Promise<Serde<unknown>> {
    const bound = serde.forTopic?.(topic, 'value') as Serde<unknown>
    const client = new RegistryClient(httpTransport({ urls: [local.url], timeoutMs: 20_000 }))
    const hub = new SchemaHub({
      client,
      shownUrl: local.url,
      registersAll: false,
      memory: undefined,
      remember: () => undefined,
      giveUpAfterMs: 20_000,
      againAfterMs: 0,
      clock: systemClock,
      timers: systemTimers,
      log: () => undefined,
    })
    const store = new SchemaStore(
      (id) => void hub.schema(id).then((answer) => store.take(answer)),
      () => 0,
    )
    store.take(await hub.prepare(bound.schemas?.needs(true, `the sink to ${topic}`) ?? []))
    bound.schemas?.connect(store)
    return bound
  }

  /** The program on the JVM, what it says, and how it ends. */
  function startJava(input: string) {
    const jvm = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', `${folder}:${jars}/*`]
    const child = spawn('java', [...jvm, 'KafkaInterchange', bootstrap, new URL(local.url).origin])
    const said = { out: '', err: '' }
    child.stdout.on('data', (chunk) => (said.out += String(chunk)))
    child.stderr.on('data', (chunk) => (said.err += String(chunk)))
    child.stdin.end(input)
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
    return { said, ended, kill: () => child.kill('SIGKILL'), isOver: () => child.exitCode !== null }
  }

  test(`${exchanged.length} schemas of three formats, ${each} records of each, both ways`, async (t) => {
    t.diagnostic(`INTERCHANGE_SEED=${seed}`)
    const as = (name: string): string => `${name} with INTERCHANGE_SEED=${seed}`
    const broker = await connectKafka({ bootstrapServers: [bootstrap], clientId: 'interchange' })
    t.after(() => broker.close())
    const names = exchanged.flatMap(({ name }) => ['seed', 'java', 'node'].map((step) => `${prefix}-${name}-${step}`))
    await broker.createTopics(names.map((topic) => ({ topic, partitions: 1 })))
    const sent = new Map<string, unknown[]>()
    const ends = new Map<string, Serde<unknown>>()
    for (const { name, serde, edges, values } of exchanged) {
      const all = [...edges, ...fc.sample(values, { numRuns: each, seed })]
      const first = await connected(serde, `${prefix}-${name}-seed`)
      // One key: only of one key the order is sure. The serializers of Java take the newest schema of the topic that they write to.
      ends.set(name, await connected(serde, `${prefix}-${name}-java`))
      const records = all.map((value) => ({ key: 'k', value: Buffer.from(first.serialize(value)) }))
      await produce(broker, `${prefix}-${name}-seed`, records, 1)
      sent.set(
        name,
        records.map(({ value }) => first.deserialize(value)),
      )
    }
    const topics = exchanged.map(({ format, name }) => `${format} ${prefix}-${name} ${sent.get(name)?.length}`)
    const java = startJava(`${topics.join('\n')}\n\n`)
    t.after(java.kill)
    await eventually('the JVM has written', () => /^written$/m.test(java.said.out) || java.isOver(), 300_000)
    assert.match(java.said.out, /^written$/m, as(java.said.err))
    const told = toldByJava(java.said.out)
    for (const { name, format } of exchanged) {
      if (format !== 'protobuf') continue
      const serde = ends.get(name) as Serde<unknown>
      // What JSON says of a number is made a number of its type where it is written.
      const values = told
        .get(`${prefix}-${name}`)
        ?.map((value) => serde.deserialize(serde.serialize(serde.json?.read(value))))
      assert.deepEqual(values, sent.get(name), as(`what Java takes the values for, of ${name}`))
    }
    const runtime = await startRuntime({
      application: join(import.meta.dirname, 'registry', 'interchange-app.ts'),
      config: {
        'runtime.http.enabled': false,
        'broker.bootstrap-servers': bootstrap,
        'schema-registry.url': local.url,
        'commit-barrier.interval-ms': 50,
      },
      log: () => undefined,
    })
    t.after(() => runtime.stop())
    assert.equal(await java.ended, 0, as(java.said.err))
    const records = [...sent.values()].reduce((count, values) => count + values.length, 0)
    assert.match(java.said.out, new RegExp(`^same ${records}$`, 'm'))
    for (const { name } of exchanged) {
      const serde = ends.get(name) as Serde<unknown>
      const written = await consumeAs(broker, `${prefix}-${name}-java`, ({ bytes, valueStart, valueEnd }) =>
        bytes.slice(valueStart, valueEnd),
      )
      const read = await whenKnown(() => written.map((bytes) => serde.deserialize(bytes)))
      assert.deepEqual(read, sent.get(name), as(name))
    }
  })
})
