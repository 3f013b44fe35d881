/**
 * At-least-once: what a crash leaves is told again, and nothing is left out. Results leave ahead of their commit, and no transaction ties
 * them to the stores and the offsets, so that a crash may come between any two of these.
 */
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { ProduceRequest } from '../../src/broker/port.ts'
import { Producer } from '../../src/engine/commit/producer.ts'
import { byKey, checkTold, committed, windowId } from './checkers.ts'
import { replaced } from './level-order.ts'
import { type Verdict, worldThatRan } from './run-seed.ts'
import { application, graceMs, outOfOrdernessMs, windowMs } from './workload.ts'
import type { Tamper } from './faulty-broker.ts'
import { type Mutant, World } from './world.ts'

const specsOf = [false, true].map((folds) => application({ next: () => undefined }, folds).compile().stores)

/** So many crashes come while of what was written together one part is there and another is not: chance alone would seldom put one there. */
const mostCuts = 6
const longestHeldMs = 200

class AtLeastOnceWorld extends World {
  #cuts = 0
  /** Results on their way to a broker that is slower than that of the stores. */
  #holding = 0

  /** Of the updates between two commits the newest is told. */
  get #folds(): boolean {
    return this.derived.foldsMs > 0
  }

  protected override get repeats(): boolean {
    return true
  }

  protected override settings(): Partial<EngineSettings> {
    return { ...super.settings(), guarantee: 'at-least-once' }
  }

  protected override tamper(): Tamper {
    const broken = super.tamper()
    this.#holding = 0
    return async (name, args, call, other) => {
      const done = (): Promise<unknown> => (broken ? broken(name, args, call, other) : call(args))
      // The stores are written, and not yet how far they have come.
      if (name === 'commitOffsets') this.#cut(0.1)
      if (name !== 'produce') return await done()
      const [{ batches }] = args as [ProduceRequest]
      const isOfStores = batches.some(({ topic }) => topic.endsWith('-changelog'))
      if (!isOfStores && this.isFaulty && this.scheduler.random.chance(0.3)) await this.#held()
      const answer = await done()
      if (isOfStores && this.#holding > 0) this.#cut(0.5)
      return answer
    }
  }

  async #held(): Promise<void> {
    this.#holding++
    await new Promise<void>((resolve) => {
      this.scheduler.at(this.scheduler.random.next() * longestHeldMs, 0, resolve)
    })
    this.#holding--
  }

  #cut(chance: number): void {
    if (this.#cuts === mostCuts || !this.isFaulty || !this.scheduler.random.chance(chance)) return
    this.#cuts++
    this.crash()
  }

  async check(): Promise<void> {
    const { cluster, inputs, stores, remains } = this
    const specs = specsOf[Number(this.#folds)] as (typeof specsOf)[number]
    await this.#checkOrder('echo-out', (value) => [value as number])
    await this.#checkOrder('seen-out', (value) => value as number[])
    const group = (value: number): string => `g${value % 3}`
    const start = (time: number): number => time - (time % windowMs)
    await this.#checkTotals(
      'sums-out',
      ({ key }) => key.toString(),
      byKey(inputs, ({ value }) => group(value)),
      {
        totalOf: (of) => of.reduce((sum, { value }) => sum + value, 0),
      },
    )
    const windows = byKey(inputs, ({ key, timestamp }) => `${key}@${start(timestamp)}`)
    await this.#checkTotals('windows-out', windowId, windows, { totalOf: (of) => of.length })
    const newest = Math.max(...inputs.map(({ timestamp }) => timestamp))
    const closed = inputs.filter((each) => start(each.timestamp) + windowMs + graceMs <= newest - outOfOrdernessMs)
    const finals = byKey(closed, ({ value, timestamp }) => `${group(value)}@${start(timestamp)}`)
    await this.#checkTotals('finals-out', windowId, finals, { totalOf: (of) => of.length })
    await checkTold({ cluster, inputs, stores, remains, specs, violate: (what) => this.violate(what) })
  }

  /** A key's records are told in their order, over and over perhaps from an earlier one on, up to the last one; none is passed over. */
  async #checkOrder(topic: string, valuesOf: (told: unknown) => readonly number[]): Promise<void> {
    const outputs = byKey(await committed(this.cluster, topic), ({ key }) => key.toString())
    for (const [key, inputs] of byKey(this.inputs, (input) => input.key)) {
      const places = new Map(inputs.map(({ value }, at) => [value, at]))
      let furthest = -1
      for (const { value } of outputs.get(key) ?? []) {
        const values = valuesOf(JSON.parse(String(value)))
        const at = places.get(values.at(-1) as number) ?? Number.POSITIVE_INFINITY
        if (at > furthest + 1 && !this.#folds) this.violate(`${topic} of ${key}: behind ${furthest} comes ${at}`)
        furthest = Math.max(furthest, at)
        const missing = topic === 'seen-out' && inputs.slice(0, at + 1).find((each) => !values.includes(each.value))
        if (missing) this.violate(`${topic} of ${key}: ${missing.value} is missing in ${values}`)
      }
      if (furthest !== inputs.length - 1) this.violate(`${topic} of ${key}: told up to ${furthest} of ${inputs.length}`)
    }
  }

  /** What is counted twice makes a total larger; nothing makes it less than it is. */
  async #checkTotals<T extends Parameters<typeof windowId>[0]>(
    topic: string,
    idOf: (record: T) => string,
    expected: ReadonlyMap<string, World['inputs']>,
    { totalOf }: { readonly totalOf: (inputs: World['inputs']) => number },
  ): Promise<void> {
    const outputs = byKey((await committed(this.cluster, topic)) as unknown as readonly T[], idOf)
    for (const [id, inputs] of expected) {
      const told = (outputs.get(id) ?? []).map(({ value }) => Number(value))
      const most = Math.max(Number.NEGATIVE_INFINITY, ...told)
      const total = totalOf(inputs)
      if (most < total) this.violate(`${topic} of ${id}: ${told.join(', ') || 'nothing'} is told, and it is ${total}`)
    }
  }
}

/** Without transactions nothing fences a process that was cut off: what it writes may be older than its successor's. */
const alone = { zombies: 0 } as const

/** Every other one is passed over: a commit flushes results first, and its stores behind them. */
function flushesOnce(): () => void {
  const flush = Producer.prototype.flush
  const calls = new WeakMap<Producer, number>()
  return replaced(Producer.prototype, 'flush', {
    value(this: Producer) {
      const call = (calls.get(this) ?? 0) + 1
      calls.set(this, call)
      return call % 2 === 1 ? Promise.resolve() : flush.call(this)
    },
  })
}

export const mutants: readonly Mutant[] = [
  {
    name: 'stores-ahead-of-results',
    patch: flushesOnce,
  },
  {
    name: 'offsets-ahead-of-results',
    // What has failed to be written is forgotten, and the offsets behind it are committed.
    patch: () => replaced(Producer.prototype, 'flush', { value: () => Promise.resolve() }),
    world: { lostRequest: 0.02, crashes: 3 },
  },
  {
    name: 'results-are-lost',
    broker: () => (name, args, call) => {
      const [request] = args as [{ readonly batches: ReadonlyArray<{ readonly topic: string }> }]
      return name === 'produce' && request.batches.some(({ topic }) => topic === 'echo-out')
        ? Promise.resolve(request.batches.map((batch) => ({ ...batch, baseOffset: 0 })))
        : call(args)
    },
  },
]

export async function runSeed(seed: number, mutant?: Mutant): Promise<Verdict> {
  const drawn = { name: 'none', ...mutant, world: { ...alone, ...mutant?.world } }
  const world = await worldThatRan(mutant, () => new AtLeastOnceWorld({ seed, mutant: drawn }))
  const { violations, derived, facts } = world
  if (violations.length === 0 && !(await world.scheduler.drive(world.check()))) world.violate('its check does not end')
  const story = facts.map((fact) => ('cause' in fact ? `${fact.type} (${fact.cause})` : fact.type)).join(', ')
  return { seed, derived, violations, story, restarts: facts.filter(({ type }) => type === 'restarting').length }
}
