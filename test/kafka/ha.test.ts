/**
 * Hot standby, proved from outside: three processes of one application on a real Kafka, under load, while the active role
 * is moved about and pods die, stand still and lose their network. An independent Java client recomputes every result;
 * the group's offsets and the outputs' producers show that at most one pod's commits took effect at a time.
 *
 * `HA_SWITCHES`, `HA_KILLS`, `HA_STOPS`, `HA_CUTS`, `HA_BOUNCES` and `HA_CHAOS` lengthen the runs, `HA_RATE` is their load,
 * `HA_STORE` their stores, `HA_TRANSACTION_VERSION` Kafka's kind of transactions, `HA_FAILOVER_TIMEOUT` the silence that
 * counts as death. Times depend on the machine and are told, not judged; with `HA_STRICT=1` a switch must cost less than a
 * second, a death the timeout and a second.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { Random } from '../../src/base/random.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { HaStatus } from '../../src/http/ha-seam.ts'
import { readAll, TestProducer } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { millrace } from '../support/millrace.ts'
import { KafkaProxy } from '../support/proxy.ts'
import type { Pod } from './verifier/ha-pods.ts'
import { endsOf, type Figures, percentile, type Scene, withPods } from './verifier/ha-scene.ts'
import { VerifierTool } from './verifier/harness.ts'

const number = (name: string, otherwise: number): number => Number(process.env[name] ?? otherwise)
const switches = number('HA_SWITCHES', 5)
const kills = number('HA_KILLS', 3)
const stops = number('HA_STOPS', 2)
const cuts = number('HA_CUTS', 1)
const bounces = number('HA_BOUNCES', 1)
const rounds = number('HA_CHAOS', 4)
const rate = number('HA_RATE', 200)
const failoverTimeoutMs = number('HA_FAILOVER_TIMEOUT', 3000)
const seed = number('HA_SEED', Date.now() % 1_000_000)
const strict = process.env.HA_STRICT === '1'
const store = process.env.HA_STORE

const proxy = await KafkaProxy.listen()
const transactionVersion = number('HA_TRANSACTION_VERSION', 2)
const kafka = await kafkaForTests({ own: true, proxyPort: proxy.port, transactionVersion })
const skip = 'skip' in kafka ? kafka.skip : false
if ('skip' in kafka) await proxy.close()

const settings = {
  'ha.desired-standbys': '2',
  'ha.heartbeat-interval': `${failoverTimeoutMs / 10}ms`,
  'ha.failover-timeout': `${failoverTimeoutMs}ms`,
  'ha.min-promotion-interval': '500ms',
}

describe(`hot standby (HA_SEED=${seed})`, { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  let tool: VerifierTool
  let port: BrokerPort
  let runs = 0

  before(async () => {
    proxy.target = broker.proxiedPort
    port = connectKafka({ bootstrapServers: [broker.bootstrap], clientId: 'ha-test' })
    tool = await VerifierTool.compile(broker)
  })
  after(async () => {
    await port.close()
    tool.dispose()
    await proxy.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function group(
    note: (line: string) => void,
    more: Readonly<Record<string, string>>,
    faults: (scene: Scene) => Promise<void>,
  ): Promise<Figures> {
    const prefix = `ha${++runs}`
    // `pod-a` alone comes by the proxy, so that it alone can be cut off.
    const bootstrapOf = (podId: string): string => (podId === 'pod-a' ? proxy.bootstrap : broker.bootstrap)
    const random = new Random(seed + runs)
    const all = { ...settings, ...(store !== undefined && { 'engine.state.store': store }), ...more }
    return await withPods({ prefix, tool, port, bootstrapOf, settings: all, rate, random, note }, faults)
  }

  test(`${switches} planned switches, a pause, an end in good order, beside pods of another build`, async (t) => {
    const figures = await group(
      (line) => t.diagnostic(line),
      {},
      async (scene) => {
        const strangers = await StrangePods.start(port, scene.prefix)
        try {
          await strangers.areSeen(scene)
          await switchByCommand(scene)
          for (let i = 1; i < switches; i++) await switchAround(scene)
          await pauseFollows(scene)
          await endInGoodOrder(scene)
          await theYoungerStays(scene)
          await strangers.takeNoPart(scene, port)
        } finally {
          await strangers.stop()
        }
      },
    )
    if (strict) assertStrict(figures, ['switch', 'promote', 'demote', 'SIGTERM'], 0.99, 1000)
  })

  test(`the active pod killed ${kills} times`, async (t) => {
    const figures = await group(
      (line) => t.diagnostic(line),
      { 'engine.state.store': store ?? 'lmdb' },
      async (scene) => {
        for (let i = 0; i < kills; i++) {
          const before = await scene.atWork(1 + scene.random.int(2))
          await sleep(scene.random.int(800))
          const active = scene.pods.pod(before.selfPodId)
          await scene.timed('kill', async () => {
            active.engine.kill()
            return await scene.pods.untilMoved(before, 'a standby to take over from the killed pod')
          })
          await active.engine.start()
        }
        await scene.pods.untilReady()
      },
    )
    if (strict) assertStrict(figures, ['kill'], 1, failoverTimeoutMs + 1000)
  })

  test(`the active pod standing still ${stops} times`, async (t) => {
    const figures = await group(
      (line) => t.diagnostic(line),
      {},
      async (scene) => {
        for (let i = 0; i < stops; i++) {
          if (scene.random.chance(0.5)) await standStillFor(scene, scene.random.int(failoverTimeoutMs / 2))
          const before = await scene.atWork(1 + scene.random.int(2))
          const active = scene.pods.pod(before.selfPodId)
          await scene.timed('SIGSTOP', async () => {
            active.suspend()
            return await scene.pods.untilMoved(before, 'a standby to take over from the pod that stands still')
          })
          await sleep(scene.random.int(2000))
          active.wake()
        }
        await scene.pods.untilReady()
      },
    )
    if (strict) assertStrict(figures, ['SIGSTOP'], 1, failoverTimeoutMs + 1000)
  })

  test(`the active pod cut off from Kafka ${cuts} times`, async (t) => {
    await group(
      (line) => t.diagnostic(line),
      {},
      async (scene) => {
        const active = scene.pods.pod('pod-a')
        for (let i = 0; i < cuts; i++) {
          await scene.pods.untilReady()
          const before = await moveTo(scene, 'pod-a')
          await scene.timed('cut', async () => {
            proxy.cut()
            return await scene.pods.untilMoved(before, 'a standby to take over from the pod that is cut off')
          })
          await scene.pods.until('the pod that is cut off to isolate itself', async () => {
            return (await active.status())?.selfState === 'ISOLATED' && (await active.engine.health()) === 'not ready'
          })
          proxy.heal()
        }
        await scene.pods.untilReady()
      },
    )
  })

  test(`the broker away ${bounces} times for longer than the failover timeout`, async (t) => {
    await group(
      (line) => t.diagnostic(line),
      {},
      async (scene) => {
        for (let i = 0; i < bounces; i++) {
          const before = await scene.pods.untilReady()
          await (scene.random.chance(0.5) ? broker.stop() : broker.kill())
          await sleep(failoverTimeoutMs * 1.5)
          await broker.start()
          const now = await scene.timed('broker back', () => scene.pods.untilReady())
          const ends = await endsOf(scene)
          await scene.timed('results again', () => scene.pods.until('results again', () => scene.grewFrom(ends)))
          assert.deepEqual(
            { active: now.selfPodId, epoch: now.tokenEpoch },
            { active: before.selfPodId, epoch: before.tokenEpoch },
            'a broker that is away is no reason for a failover',
          )
        }
      },
    )
  })

  test(`${rounds} rounds of anything at any moment`, async (t) => {
    await group(
      (line) => t.diagnostic(line),
      {},
      async (scene) => {
        for (let i = 0; i < rounds; i++) await anything(scene, proxy)
        await scene.pods.untilReady()
      },
    )
  })
})

/** Without waiting for what came before: pods die and stand still while others are being promoted. */
async function anything(scene: Scene, network: KafkaProxy): Promise<void> {
  const { pods, random } = scene
  const some = random.pick(pods.all)
  const inBetween = (): Promise<void> => sleep(random.int(failoverTimeoutMs * 1.5))
  const restart = async (...those: readonly Pod[]): Promise<void> => {
    for (const pod of those) pod.engine.kill()
    await inBetween()
    for (const pod of those) await pod.engine.start()
  }
  const order = async (path: string): Promise<void> => {
    // Whatever the answer: at such a moment a pod may refuse, or not be there at all.
    await some.post(path).catch(() => undefined)
    await sleep(random.int(500))
  }
  switch (
    random.pick(['kill', 'kill two', 'stand still', 'cut', 'switch and kill', 'promote', 'demote by force'] as const)
  ) {
    case 'kill':
      await restart(some)
      break
    case 'kill two':
      await restart(...pods.all.filter((pod) => pod !== some))
      break
    case 'stand still':
      some.suspend()
      await inBetween()
      some.wake()
      break
    case 'cut':
      if (random.chance(0.5)) network.cut()
      else network.standStill()
      await inBetween()
      network.heal()
      break
    case 'switch and kill':
      await order('/ha/switch')
      await restart(random.pick(pods.all))
      break
    case 'promote':
      await order(`/ha/promote?pod=${random.pick(pods.all).id}&force=true`)
      break
    default:
      await order(`/ha/demote?pod=${(await pods.active())?.selfPodId ?? some.id}&force=true`)
  }
  await sleep(random.int(1500))
}

function assertStrict({ gapsMs }: Figures, kinds: readonly string[], share: number, belowMs: number): void {
  const gaps = kinds.flatMap((kind) => gapsMs.get(kind) ?? [])
  const worst = percentile(gaps, share)
  assert.ok(worst < belowMs, `${kinds.join(', ')}: ${worst} ms, and less than ${belowMs} ms is asked for`)
}

/** Sends a command to some pod until it is taken: a pod may see a moment later what another sees already. */
async function send({ pods, random }: Scene, path: string): Promise<{ readonly commandOffset: number }> {
  let last: unknown
  const acknowledged = await pods.until(`${path} to be taken`, async () => {
    const { status, body } = await random.pick(pods.all).post(path)
    last = body
    return status === 202 && (body as { commandOffset: number })
  })
  assert.ok(acknowledged, JSON.stringify(last))
  return acknowledged
}

const readyPods = async ({ pods }: Scene): Promise<string[]> =>
  (await pods.statuses()).filter((status) => status.selfState === 'READY_STANDBY').map((status) => status.selfPodId)

async function switchAround(scene: Scene): Promise<void> {
  const { pods, random } = scene
  const before = await scene.atWork(1 + random.int(2))
  await sleep(random.int(600))
  const verb = random.pick(['switch', 'promote', 'demote'] as const)
  const target = verb === 'promote' ? random.pick(await readyPods(scene)) : undefined
  const query = { switch: '', promote: `?pod=${target}`, demote: `?pod=${before.selfPodId}` }[verb]
  await scene.timed(verb, async () => {
    await send(scene, `/ha/${verb}${query}`)
    return await pods.untilMoved(before, `the result of ${verb}${query}`, target)
  })
}

async function moveTo(scene: Scene, podId: string): Promise<HaStatus> {
  const before = await scene.pods.untilReady(1)
  if (before.selfPodId === podId) return before
  await send(scene, `/ha/promote?pod=${podId}`)
  await scene.pods.untilMoved(before, `${podId} to be promoted`, podId)
  return await scene.pods.untilReady()
}

/** The command line, against real pods. */
async function switchByCommand(scene: Scene): Promise<void> {
  const before = await scene.atWork()
  const { url } = scene.random.pick(scene.pods.all).engine
  const { code, stdout, stderr } = await scene.timed('command line', () =>
    millrace(['ha', 'switch', '--wait', '110', '--url', url, '--json']),
  )
  assert.equal(code, 0, `${stderr}\n${await scene.pods.describe()}`)
  const after = await scene.pods.untilMoved(before, 'what the command line said is done')
  assert.equal((JSON.parse(stdout) as { active: string }).active, after.selfPodId)
}

/** Shorter than the failover timeout: somebody may take over on a slow machine, nothing may be lost on any. */
async function standStillFor({ pods }: Scene, ms: number): Promise<void> {
  const before = await pods.untilReady(1)
  const active: Pod = pods.pod(before.selfPodId)
  active.suspend()
  await sleep(ms)
  active.wake()
}

async function pauseFollows(scene: Scene): Promise<void> {
  const { pods } = scene
  const before = await pods.untilReady()
  const active = pods.pod(before.selfPodId)
  assert.equal((await active.post('/pause')).status, 200)
  await pods.until('the active pod to be paused', async () => (await active.lifecycle()) === 'PAUSED')
  const written = await endsOf(scene)
  await send(scene, '/ha/switch')
  const now = await pods.untilMoved(before, 'a switch while paused')
  const next = pods.pod(now.selfPodId)
  await pods.until('the pause to follow the active role', async () => (await next.lifecycle()) === 'PAUSED')
  assert.deepEqual(await endsOf(scene), written, 'nothing is written while paused, whoever is active')
  assert.equal((await next.post('/unpause')).status, 200)
  await pods.until('results after the pause', () => scene.grewFrom(written))
}

async function endInGoodOrder(scene: Scene): Promise<void> {
  const before = await scene.atWork()
  const { engine } = scene.pods.pod(before.selfPodId)
  await scene.timed('SIGTERM', async () => {
    const ended = engine.stop()
    await scene.pods.untilMoved(before, 'a standby to take over from the pod that ends')
    assert.equal(await ended, 0)
  })
  await engine.start()
  await scene.pods.untilReady()
}

/** Two processes under one pod's name. */
async function theYoungerStays(scene: Scene): Promise<void> {
  const { pods } = scene
  await pods.untilReady()
  const older = pods.pod(scene.random.pick(await readyPods(scene)))
  const younger = pods.double(older.id)
  try {
    await younger.engine.start()
    assert.equal(await older.engine.untilExit(120_000), 3, older.engine.log.slice(-3000))
    await pods.until('the younger one to be ready', async () => (await younger.status())?.selfState === 'READY_STANDBY')
    assert.equal(await younger.engine.stop(), 0, younger.engine.log.slice(-3000))
    await older.engine.start()
    await pods.untilReady()
  } finally {
    younger.dispose()
  }
}

/** Pods of builds that this one does not know: one with a role and a state of its own, one with records of its own. */
class StrangePods {
  static readonly ids = ['pod-witness', 'pod-of-tomorrow'] as const
  readonly #producer: TestProducer
  readonly #topic: string
  #heartbeat = 0
  #running = true
  readonly #beating: Promise<void>

  private constructor(producer: TestProducer, topic: string) {
    this.#producer = producer
    this.#topic = topic
    this.#beating = this.#beat()
    // Told where it is awaited.
    this.#beating.catch(() => undefined)
  }

  static async start(port: BrokerPort, applicationId: string): Promise<StrangePods> {
    return new StrangePods(await TestProducer.open(port), `${applicationId}-ha`)
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#beating
  }

  /** They look like the best candidates there could be, but for what nobody here knows. */
  async #beat(): Promise<void> {
    const common = { role: 'WITNESS', state: 'OBSERVING', failoverPriority: 1_000_000, lagRecords: 0, lagMs: 0 }
    while (this.#running) {
      const heartbeat = ++this.#heartbeat
      const records = StrangePods.ids.map((id, i) => ({
        key: `s/${id}`,
        value: JSON.stringify({ ...common, v: i === 0 ? 1 : 99, incarnation: id, heartbeat, orbit: 'high' }),
        timestamp: Date.now(),
      }))
      await this.#producer.write(this.#topic, 0, records)
      await sleep(failoverTimeoutMs / 10)
    }
  }

  async areSeen({ pods }: Scene): Promise<void> {
    await pods.until('every pod to show the pods of another build', async () => {
      const statuses = await pods.statuses()
      return statuses.length === pods.all.length && statuses.every((status) => this.#isShownIn(status))
    })
  }

  #isShownIn(status: HaStatus): boolean {
    return StrangePods.ids.every((id) => {
      const peer = status.peers.find((each) => each.podId === id)
      return peer?.role === 'UNKNOWN' && peer.state === 'UNKNOWN' && peer.freshnessMs < failoverTimeoutMs
    })
  }

  /** Not counted as ready, not promoted, not even by force. */
  async takeNoPart(scene: Scene, port: BrokerPort): Promise<void> {
    const before = await scene.pods.untilReady()
    assert.equal(before.readyStandbyCount, 2)
    await this.areSeen(scene)
    const active = scene.pods.pod(before.selfPodId)
    const refused = await active.post('/ha/promote?pod=pod-witness')
    assert.equal(refused.status, 409, JSON.stringify(refused.body))
    const { commandOffset } = await send(scene, '/ha/promote?pod=pod-witness&force=true')
    const result = await scene.pods.until('the result of the forced promotion', async () => {
      const records = await readAll(port, this.#topic, 0)
      return records.find(({ key }) => key === `r/${commandOffset}`)?.value ?? undefined
    })
    assert.equal((JSON.parse(result) as { outcome: string }).outcome, 'REJECTED', result)
    assert.equal((await scene.pods.untilReady()).selfPodId, before.selfPodId)
  }
}
