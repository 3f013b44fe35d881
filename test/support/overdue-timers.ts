/** An application whose timers are often asked for when their time has passed, and what it tells, reckoned one record after the other. */
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import { type Application, defineApp, keyValueStore, serdes } from '../../src/index.ts'

const disorderMs = 1000
const waitsMs = 300
export const began = 1_700_000_000_000

export interface Step {
  readonly key: string
  readonly n: number
  readonly timestamp: number
  readonly partition: number
}

export interface Shape {
  /** Another branch of the sub-topology waits for an asynchronous function: so long for a step. */
  readonly beside?: (n: number) => Promise<void>
  /** The function that sets the timers waits before it does. */
  readonly awaits?: boolean
  /** Timers that fire ask for others, whose time has passed as well. */
  readonly again?: boolean
  /** The timers lie behind a change of key. */
  readonly rekeys?: boolean
}

const asSteps = { key: serdes.string, value: serdes.json<number>() }
const asTold = { key: serdes.string, value: serdes.json<Told>() }
export type Told = readonly [what: 'step' | 'timer', n: number, count: number]

const asksAgain = (at: number): boolean => at % 5 < 2
const renamed = (key: string): string => `of ${key}`

export function application({ beside, awaits = false, again = false, rekeys = false }: Shape): Application {
  const counts = keyValueStore('counts', asSteps)
  return defineApp({
    applicationId: 'overdue-timers',
    build(topology) {
      const input = topology.stream('steps', { ...asSteps, watermark: { maxOutOfOrderness: disorderMs } })
      const steps = rekeys ? input.selectKey((_n, key) => renamed(key)).repartition(asSteps) : input
      steps
        .process<string, Told>(
          (context) => {
            const taken = (n: number, key: string, timestamp: number): void | Promise<void> => {
              const store = context.store(counts)
              store.put(key, (store.get(key) ?? 0) + 1)
              if (n % 5 === 0) context.timers.delete(key)
              else if (n % 2 === 1) context.timers.set(key, timestamp + waitsMs)
              return context.forward(key, ['step', n, store.get(key) ?? 0])
            }
            return {
              process: (n, key, { timestamp }) =>
                awaits && n % 3 === 0 ? waited().then(() => taken(n, key, timestamp)) : taken(n, key, timestamp),
              onTimer: (key, at) => {
                if (again && asksAgain(at)) context.timers.set(key, at + 2)
                return context.forward(key as string, [
                  'timer',
                  at - began,
                  context.store(counts).get(key as string) ?? 0,
                ])
              },
            }
          },
          { timers: true, stores: [counts], ...asTold },
        )
        .to('told', asTold)
      if (beside === undefined) return
      const looked = async (n: number): Promise<number> => {
        await beside(n)
        return n
      }
      steps.mapValues(looked).to('looked-up', asSteps)
    },
  })
}

const waited = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Some steps are late by more than timers wait. No two have one time: which of them is dispatched first would be open. */
export function stepsOf(seed: number, count: number, partitions: number): Step[] {
  const random = new Random(seed)
  const steps: Step[] = []
  const times = new Set<number>()
  let now = 0
  for (let n = 0; n < count; n++) {
    now += random.int(30)
    const key = `k${Math.floor(60 * random.next() ** 3)}`
    const late = random.chance(0.3) ? random.int(random.chance(0.1) ? 20_000 : 1500) : 0
    const partition = keySlot(Buffer.from(key)) % partitions
    let time = Math.floor(Math.max(0, now - late) / partitions) * partitions + partition
    while (times.has(time)) time += partitions
    times.add(time)
    steps.push({ key, n, timestamp: began + time, partition })
  }
  return steps
}

/** Event time goes on behind all timers, in each partition. */
export function endsOf(steps: readonly Step[], partitions: number): Step[] {
  const last = Math.max(...steps.map(({ timestamp }) => timestamp))
  return Array.from({ length: partitions }, (_, partition) => ({
    ...{ key: `end-${partition}`, n: 0, timestamp: last + 600_000 + partition, partition },
  }))
}

interface Timer {
  readonly at: number
  /** It fires at this instant: its own time, or the first behind the watermark before the record that asked for it. */
  readonly due: number
}

/** `feeds`: each of them lies there all at once, when what came before is done. By key, without the ends. */
export function expected(
  feeds: ReadonlyArray<readonly Step[]>,
  partitions: number,
  { again = false }: Shape,
): Map<string, Told[]> {
  const counts = new Map<string, number>()
  const timers = new Map<string, Timer>()
  const told = new Map<string, Told[]>()
  const tell = (key: string, what: Told): void => {
    told.set(key, [...(told.get(key) ?? []), what])
  }
  const set = (key: string, at: number, asked: number): void => {
    timers.set(key, { at, due: Math.max(at, asked + 1) })
  }
  const fire = (upTo: number): void => {
    for (;;) {
      const [first] = [...timers].filter(([, { due }]) => due <= upTo).sort(([, a], [, b]) => a.due - b.due)
      if (first === undefined) return
      const [key, { at, due }] = first
      timers.delete(key)
      if (again && asksAgain(at)) set(key, at + 2, due)
      tell(key, ['timer', at - began, counts.get(key) ?? 0])
    }
  }
  for (const { step, before } of inOrder(feeds, partitions)) {
    fire(before)
    const { key, n, timestamp } = step
    counts.set(key, (counts.get(key) ?? 0) + 1)
    if (n % 5 === 0) timers.delete(key)
    else if (n % 2 === 1) set(key, timestamp + waitsMs, before)
    tell(key, ['step', n, counts.get(key) ?? 0])
  }
  return new Map([...told].filter(([key]) => !key.startsWith('end')))
}

/** Always the oldest of the records that are first in their partitions; `before`: the watermark before it. */
function* inOrder(
  feeds: ReadonlyArray<readonly Step[]>,
  partitions: number,
): Generator<{ readonly step: Step; readonly before: number }> {
  const newest = new Array<number>(partitions).fill(Number.NEGATIVE_INFINITY)
  let reached = Number.NEGATIVE_INFINITY
  for (const feed of feeds) {
    const queues = newest.map((_, partition) => feed.filter((step) => step.partition === partition).reverse())
    const reach = (taken: number): number => {
      const known = newest.map((time, p) => (p === taken ? time : Math.max(time, queues[p]?.at(-1)?.timestamp ?? time)))
      reached = Math.max(reached, Math.min(...known) - disorderMs)
      return reached
    }
    for (let left = feed.length; left > 0; left--) {
      const heads = queues.map((queue) => queue.at(-1)?.timestamp ?? Number.POSITIVE_INFINITY)
      const first = heads.indexOf(Math.min(...heads))
      const before = reach(first)
      const step = queues[first]?.pop() as Step
      newest[first] = Math.max(newest[first] as number, step.timestamp)
      reach(first)
      yield { step, before }
    }
  }
}

/** What was told, as `expected` has it. */
export function toldByKey(
  records: ReadonlyArray<{ readonly key: unknown; readonly value: unknown }>,
): Map<string, Told[]> {
  const told = new Map<string, Told[]>()
  for (const { key, value } of records) {
    const name = String(key).replace(renamed(''), '')
    if (!name.startsWith('end')) told.set(name, [...(told.get(name) ?? []), value as Told])
  }
  return told
}
