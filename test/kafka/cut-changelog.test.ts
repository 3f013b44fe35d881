/**
 * A changelog on a real Kafka that loses its end under a group of pods, as a broker's disk that went back to an earlier
 * moment would bring it about: whoever goes on says so, and no result is wrong. `CUT_CHANGELOG_LONG=1`: also under the pod
 * that runs, which `test/engine/lost-state.test.ts` holds quickly.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { consume, produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { type Pod, Pods } from './verifier/ha-pods.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
const topics = ['in', 'echo', 'sum', 'list', 'window', 'count']
const partitions = 2
const keys = 20
const rounds = 3
const failoverTimeoutMs = 4000

const connect = () => connectKafka({ bootstrapServers: [broker.bootstrap], clientId: 'cut', requestTimeoutMs: 20_000 })

class Group {
  readonly prefix = `cut-${randomUUID().slice(0, 8)}`
  readonly pods: Pods
  #fed = 0

  constructor(t: TestContext) {
    this.pods = new Pods({
      prefix: this.prefix,
      ids: ['pod-a', 'pod-b'],
      bootstrapOf: () => broker.bootstrap,
      settings: {
        'ha.heartbeat-interval': `${failoverTimeoutMs / 10}ms`,
        'ha.failover-timeout': `${failoverTimeoutMs}ms`,
        'ha.min-promotion-interval': '500ms',
        'engine.state.store': 'memory',
      },
    })
    t.after(() => this.pods.dispose())
  }

  async start(): Promise<void> {
    const port = await connect()
    await port.createTopics(topics.map((topic) => ({ topic: `${this.prefix}-${topic}`, partitions })))
    await port.close()
    await this.pods.start()
  }

  async feed(rounds: number): Promise<void> {
    const port = await connect()
    for (let i = 0; i < rounds; i++) {
      const round = this.#fed++
      const records = Array.from({ length: keys }, (_, key) => ({ key: `k${key}`, value: Buffer.from(`${round}|1|g`) }))
      await produce(port, `${this.prefix}-in`, records, partitions)
    }
    await port.close()
  }

  /** The sums of each key, one after the other: each is one more than the one before. */
  async sums(): Promise<number> {
    const port = await connect()
    const found = await consume(port, `${this.prefix}-sum`)
    await port.close()
    const byKey = Map.groupBy(found, ({ key }) => key as string)
    for (const [key, sums] of byKey)
      assert.deepEqual(
        sums.map(({ value }) => Number(value)),
        sums.map((_, i) => i + 1),
        key,
      )
    return found.length
  }

  /** In several commits, so that the changelog has as many batches. */
  async feedAndSum(rounds: number): Promise<void> {
    for (let i = 0; i < rounds; i++) {
      await this.feed(1)
      await this.pods.until('all is summed up', async () => (await this.sums()) === this.#fed * keys)
    }
    await this.pods.untilReady()
  }

  /** What a pod says of its end, once one has said it. */
  async lost(pods: readonly Pod[]): Promise<string> {
    const deadline = performance.now() + 240_000
    for (;;) {
      for (const pod of pods) {
        const line = pod.engine.log.split('\n').find((each) => each.includes('CHANGELOG_LOST'))
        if (line !== undefined) return line
      }
      await this.sums()
      if (performance.now() > deadline)
        assert.fail(`nobody says that the changelog is cut\n${await this.pods.describe()}`)
      await sleep(500)
    }
  }

  /** Takes the last batches with records away from each partition of the changelog, and what is behind them. */
  cut(): void {
    let cut = 0
    for (let partition = 0; partition < partitions; partition++) {
      const folder = join(broker.folder, 'data', `${this.prefix}-sums-changelog-${partition}`)
      const segments = readdirSync(folder).filter((name) => name.endsWith('.log'))
      const segment = join(folder, segments.sort().at(-1) as string)
      const bytes = readFileSync(segment)
      const batches: number[] = []
      for (let at = 0; at + 12 < bytes.length; at += 12 + bytes.readInt32BE(at + 8)) batches.push(at)
      // A batch of records and the marker of its transaction take turns.
      if (batches.length < 2 * rounds) continue
      truncateSync(segment, batches.at(-4) as number)
      cut++
    }
    assert.ok(cut > 0, 'there is something to cut')
  }
}

describe('a changelog that loses its end under pods', { skip }, () => {
  after(async () => {
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('keeps a standby from taking over', async (t) => {
    const group = new Group(t)
    await group.start()
    await group.feedAndSum(rounds)
    const active = (await group.pods.active())?.selfPodId as string
    await broker.kill()
    group.pods.pod(active).engine.kill()
    group.cut()
    await broker.start()
    await group.feed(1)
    const [standby] = group.pods.all.filter(({ id }) => id !== active)
    assert.match(await group.lost([standby as Pod]), /sums-changelog/)
    assert.equal(await group.sums(), rounds * keys, 'nothing was processed over it')
  })

  if (process.env.CUT_CHANGELOG_LONG === '1') {
    test('stops the pod that runs, and whoever would take over', async (t) => {
      const group = new Group(t)
      await group.start()
      await group.feedAndSum(rounds)
      await broker.kill()
      group.cut()
      await broker.start()
      await group.feed(20)
      assert.match(await group.lost(group.pods.all), /sums-changelog/)
      await group.sums()
    })
  }
})
