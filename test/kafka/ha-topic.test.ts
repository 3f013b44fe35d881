/**
 * The coordinator topic on a real Kafka: what it refuses of one pod, and what it has lost. Coordinators are the real
 * ones; the engine below them does as it is told.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { KafkaOptions } from '../../src/broker/kafka/options.ts'
import { encodeTag } from '../../src/engine/commit/tag.ts'
import type { HaFact } from '../../src/engine/ha-contract.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import { coordinatorTopic, type HaCoordinator, type HaSettings } from '../../src/ha/contract.ts'
import { createHa } from '../../src/ha/coordinator-shell.ts'
import type { HaStatus } from '../../src/ha/shown/view.ts'
import { TestProducer } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { settings } from '../unit/ha/support.ts'

const alice = { username: 'alice', password: 'alice-secret' }
const kafka = await kafkaForTests({ own: true, secured: alice })
const skip = 'skip' in kafka ? kafka.skip : false
const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka

const failoverTimeoutMs = 2500
const twoHoursMs = 2 * 3_600_000

class Pod {
  readonly ha: HaCoordinator
  readonly warnings: string[] = []
  readonly #port: ReturnType<typeof connectKafka>

  constructor(
    applicationId: string,
    podId: string,
    options: Partial<KafkaOptions>,
    clockAheadMs: number,
    patience: Partial<HaSettings>,
  ) {
    this.#port = connectKafka({ bootstrapServers: [broker.bootstrap], clientId: podId, ...options })
    const timing = { heartbeatIntervalMs: 250, selfFenceTimeoutMs: 2000, failoverTimeoutMs, ...patience }
    this.ha = createHa({
      broker: this.#port,
      settings: settings({ applicationId, groupId: applicationId, podId, ...timing }),
      engine: (command) => {
        // An engine that does at once what it is told.
        if (command.type === 'ha-promote')
          this.#tell({ type: 'identity-taken', tokenEpoch: command.tokenEpoch } satisfies HaFact)
        if (command.type === 'ha-proceed') this.#tell({ type: 'running' } as EngineFact)
        if (command.type === 'ha-step-down') this.#tell({ type: 'standby' })
      },
      clock: { now: () => systemClock.now() + clockAheadMs, monotonic: () => systemClock.monotonic() },
      timers: systemTimers,
      random: new Random(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0),
      log: (level, message) => level === 'warn' && this.warnings.push(message),
      fail: (error) => this.warnings.push(error.message),
    })
    this.ha.start().catch((error: Error) => this.warnings.push(error.message))
    this.#tell({ type: 'standby' })
    this.#tell({ type: 'standby-progress', progress: { open: true, lagRecords: 0, lagMs: 0, freshnessMs: 0 } })
  }

  get status(): HaStatus | null {
    return this.ha.status()
  }

  #tell(fact: EngineFact | HaFact): void {
    setImmediate(() => this.ha.engineFact(fact))
  }

  async kill(): Promise<void> {
    this.ha.abandon()
    await this.#port.close()
  }
}

class Group {
  readonly applicationId = `topic-${randomUUID()}`
  readonly topic = coordinatorTopic(this.applicationId)
  readonly pods: Pod[] = []

  constructor(t: TestContext) {
    t.after(() => Promise.all(this.pods.map((pod) => pod.kill())))
  }

  add(podId: string, options: Partial<KafkaOptions> = {}, clockAheadMs = 0, patience: Partial<HaSettings> = {}): Pod {
    const pod = new Pod(this.applicationId, podId, options, clockAheadMs, patience)
    this.pods.push(pod)
    return pod
  }

  async active(podId: string, patience: Partial<HaSettings> = {}): Promise<Pod> {
    const pod = this.add(podId, {}, 0, patience)
    await this.until(`${podId} is active`, () => pod.ha.state === 'ACTIVE')
    return pod
  }

  async until(what: string, done: () => boolean | undefined): Promise<void> {
    const deadline = performance.now() + 60_000
    while (done() !== true) {
      const seen = this.pods.map(
        ({ status, warnings }) => `${status?.selfState} ${status?.notReady} ${warnings.at(-1)}`,
      )
      if (performance.now() > deadline) assert.fail(`waited in vain until ${what}: ${seen.join(' | ')}`)
      await sleep(20)
    }
  }

  make(config: Readonly<Record<string, string>>): Promise<void> {
    return withPort((port) => port.createTopics([{ topic: this.topic, partitions: 1, config }]))
  }

  /** What the engine's commits of this epoch leave with the group. */
  commits(tokenEpoch: number): Promise<void> {
    return withPort(async (port) => {
      const id = `x-${this.applicationId}`
      const producer = await TestProducer.open(port, id)
      const member = { groupId: this.applicationId, memberId: '', generationId: -1, groupInstanceId: null }
      const metadata = encodeTag({ tokenEpoch, seq: 1, maxTimestamp: 1, watermark: 1 })
      const at = [{ topic: this.topic, partition: 0, offset: 0, metadata }]
      await port.commitOffsetsInTransaction(id, producer.identity, member, at)
      await producer.end(true)
    })
  }

  /** Deletes all records of the topic. */
  async empty(): Promise<void> {
    const file = join(tmpdir(), `${this.applicationId}.json`)
    writeFileSync(file, JSON.stringify({ partitions: [{ topic: this.topic, partition: 0, offset: -1 }], version: 1 }))
    const asked = ['--bootstrap-server', broker.bootstrap, '--offset-json-file', file]
    await broker.tool('org.apache.kafka.tools.DeleteRecordsCommand', asked)
    rmSync(file)
  }

  configure(change: string): Promise<string> {
    const what = ['--alter', '--entity-type', 'topics', '--entity-name', this.topic, '--add-config', change]
    return broker.tool('kafka.admin.ConfigCommand', ['--bootstrap-server', broker.bootstrap, ...what])
  }

  allow(kind: 'topic' | 'group', ...operations: readonly string[]): Promise<string> {
    const asked = operations.flatMap((operation) => ['--operation', operation])
    const name = kind === 'topic' ? this.topic : this.applicationId
    const what = ['--add', '--allow-principal', 'User:alice', `--${kind}`, name, ...asked]
    return broker.tool('org.apache.kafka.tools.AclCommand', ['--bootstrap-server', broker.bootstrap, ...what])
  }
}

async function withPort<T>(use: (port: ReturnType<typeof connectKafka>) => Promise<T>): Promise<T> {
  const port = connectKafka({ bootstrapServers: [broker.bootstrap], clientId: 'ha-topic-test' })
  try {
    return await use(port)
  } finally {
    await port.close()
  }
}

describe('the coordinator topic on Kafka', { skip }, () => {
  after(async () => {
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('a pod whose clock is two hours ahead follows and takes over: the topic takes the broker’s time', async (t) => {
    const group = new Group(t)
    const active = await group.active('pod-a')
    const ahead = group.add('pod-b', {}, twoHoursMs)
    await group.until('it is ready', () => ahead.ha.state === 'READY_STANDBY')
    await group.until('the active pod counts it', () => active.status?.readyStandbyCount === 1)
    await active.kill()
    await group.until('it takes over', () => ahead.ha.state === 'ACTIVE')
    const [takeover] = ahead.ha.history()?.events ?? []
    assert.equal(takeover?.podId, 'pod-b')
    assert.ok(Math.abs(Date.parse(takeover?.at ?? '') - Date.now()) < twoHoursMs / 2, 'the time is the broker’s')
  })

  test('where an older topic refuses its timestamps it is not ready, says why, and is once that is mended', async (t) => {
    const group = new Group(t)
    await group.make({ 'cleanup.policy': 'compact', 'message.timestamp.type': 'CreateTime' })
    const active = await group.active('pod-a')
    const ahead = group.add('pod-b', {}, twoHoursMs)
    await group.until('it says why', () => /INVALID_TIMESTAMP.*LogAppendTime/.test(ahead.status?.notReady ?? ''))
    await sleep(failoverTimeoutMs)
    assert.equal(ahead.ha.state, 'CATCHING_UP')
    assert.equal(ahead.status?.readyStandbyCount, 0)
    assert.equal(active.status?.readyStandbyCount, 0)
    assert.equal(ahead.warnings.filter((each) => each.includes('INVALID_TIMESTAMP')).length, 1, 'told once')
    await group.configure('message.timestamp.type=LogAppendTime')
    await group.until('it is ready', () => ahead.ha.state === 'READY_STANDBY')
    assert.equal(ahead.status?.notReady, null)
  })

  test('a pod that may not write is not ready, says what to grant, and is once it is granted', async (t) => {
    const group = new Group(t)
    const active = await group.active('pod-a')
    await group.allow('topic', 'Read', 'Describe', 'DescribeConfigs')
    await group.allow('group', 'Read', 'Describe')
    const secured = { bootstrapServers: [broker.saslBootstrap], sasl: { mechanism: 'PLAIN', ...alice } as const }
    const mute = group.add('pod-b', secured)
    await group.until('it says why', () => /AUTHORIZATION_FAILED.*WRITE/.test(mute.status?.notReady ?? ''))
    await sleep(failoverTimeoutMs)
    assert.equal(mute.ha.state, 'CATCHING_UP')
    assert.equal(active.status?.peers.length, 0)
    await group.allow('topic', 'Write')
    await group.until('it is ready', () => mute.ha.state === 'READY_STANDBY')
    await active.kill()
    await group.until('it takes over', () => mute.ha.state === 'ACTIVE')
  })

  test('an emptied topic gives nobody the role of a living active pod; a later death does', async (t) => {
    const group = new Group(t)
    await group.make({ 'cleanup.policy': 'compact,delete', 'message.timestamp.type': 'LogAppendTime' })
    // It tells its claim again once, and then not for a long time: whoever comes later knows it by its heartbeats alone.
    const active = await group.active('pod-a', { failoverTimeoutMs: 3_600_000 })
    await group.commits(1)
    await group.empty()
    const first = group.add('pod-b')
    await group.until('it is told', () => active.warnings.some((each) => each.includes('telling it again')))
    await group.until('it knows the active pod', () => first.status?.tokenHolder === 'pod-a')
    await first.kill()
    await group.empty()
    const second = group.add('pod-c')
    await group.until('it knows the active pod', () => second.status?.tokenHolder === 'pod-a')
    await group.until('it is ready', () => second.ha.state === 'READY_STANDBY')
    await sleep(2 * failoverTimeoutMs)
    assert.deepEqual([active.ha.state, active.status?.tokenEpoch], ['ACTIVE', 1])
    assert.deepEqual([second.ha.state, second.status?.tokenEpoch], ['READY_STANDBY', 1])
    await active.kill()
    await group.until('it takes over', () => second.ha.state === 'ACTIVE')
    assert.equal(second.status?.tokenEpoch, 2)
  })
})
