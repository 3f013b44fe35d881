/** The callback of a schedule and the calls for records of one processor: never both at once. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { compile, type ProcessOptions, serdes } from '../../../src/index.ts'
import { type CallGate, type Maybe, originAt } from '../../../src/operators/contract.ts'
import { Task } from '../../../src/operators/task.ts'

type Clock = 'event-time' | 'wall-clock'

const text = { key: serdes.string, value: serdes.string }

/** Bounds nothing, and calls a turn later, as one where others were before. */
const gate: CallGate = {
  isFree: false,
  entered: () => undefined,
  left: () => undefined,
  run: async (_origin, call) => {
    await soon()
    return await call()
  },
}

/** One processor, each of whose calls begins and ends in `told` and answers when the test says so. */
class OneProcessor {
  readonly told: string[] = []
  readonly task: Task
  readonly failures: string[] = []
  /** Records and callbacks that the task has not done. */
  underWay = 0
  cancel = (): void => undefined
  readonly #clock: Clock
  readonly #open = new Map<string, PromiseWithResolvers<void>>()
  #time = 0

  constructor(clock: Clock, options: ProcessOptions<string, string> = {}, isAsync = true) {
    this.#clock = clock
    const call = (name: string): Promise<void> | undefined => {
      if (!isAsync) {
        this.told.push(name)
        return
      }
      this.told.push(`${name}…`)
      const answer = Promise.withResolvers<void>()
      this.#open.set(name, answer)
      return answer.promise.finally(() => this.told.push(name))
    }
    const topology = compile((t) =>
      t
        .stream('in', text)
        .process<string, string>(
          (context) => {
            const schedule = context.schedule('1s', clock, () => call('callback'))
            this.cancel = () => schedule.cancel()
            return (_value, key) => call(key)
          },
          { ...options, ...text },
        )
        .to('out', text),
    )
    this.task = new Task({
      topology,
      subtopology: 0,
      partition: 0,
      stores: new Map(),
      globalStores: new Map(),
      host: {
        emit: () => undefined,
        handOff: () => undefined,
        dropped: () => undefined,
        wallClock: () => 0,
        requestCommit: () => undefined,
        ...(options.concurrency !== undefined && { gate: () => gate }),
      },
    })
    this.task.init()
  }

  put(key: string): void {
    const bytes = new TextEncoder().encode(key)
    this.#follow(this.task.process(0, this.task.decode(0, bytes, bytes, 0, [], originAt('in', 0, 0, 0, 1))))
  }

  /** Time comes on by a second. */
  fire(): void {
    this.#time += 1000
    this.#follow(this.#clock === 'event-time' ? this.task.advance(this.#time) : this.task.wallClock(this.#time))
  }

  async answer(name: string, error?: Error): Promise<void> {
    const answer = this.#open.get(name)
    if (error === undefined) answer?.resolve()
    else answer?.reject(error)
    await settled()
  }

  #follow(pending: Maybe): void {
    if (pending === undefined) return
    this.underWay++
    const over = (error?: Error): void => {
      this.underWay--
      if (error !== undefined) this.failures.push(error.message)
    }
    void pending.then(() => over(), over)
  }
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await soon()
}

for (const clock of ['event-time', 'wall-clock'] as const)
  for (const concurrency of [undefined, 8])
    describe(`the callback of a schedule, ${clock}${concurrency ? ', with bounded calls' : ''}`, () => {
      const options = concurrency === undefined ? {} : { concurrency }

      test('waits for the calls under way, and holds those that come, in their order', async () => {
        const one = new OneProcessor(clock, options)
        for (const key of ['a', 'b']) one.put(key)
        await settled()
        one.fire()
        for (const key of ['c', 'd']) one.put(key)
        await settled()
        assert.deepEqual(one.told, ['a…', 'b…'])
        await one.answer('a')
        assert.deepEqual(one.told, ['a…', 'b…', 'a'])
        await one.answer('b')
        one.put('e')
        await settled()
        assert.deepEqual(one.told.splice(0), ['a…', 'b…', 'a', 'b', 'callback…'])
        await one.answer('callback')
        assert.deepEqual(one.told.splice(0), ['callback', 'c…', 'd…', 'e…'])
        for (const key of ['c', 'd', 'e']) await one.answer(key)
        assert.equal(one.underWay, 0)
        assert.deepEqual(one.failures, [])
        one.fire()
        assert.deepEqual(one.told, ['c', 'd', 'e', 'callback…'])
      })

      test('does not wait for ever behind a call that fails, and holds nobody up once it has failed itself', async () => {
        const one = new OneProcessor(clock, options)
        one.put('a')
        await settled()
        one.fire()
        one.put('b')
        await one.answer('a', new Error('no a'))
        assert.deepEqual(one.told, ['a…', 'a', 'callback…'])
        await one.answer('callback', new Error('no callback'))
        assert.deepEqual(one.told, ['a…', 'a', 'callback…', 'callback', 'b…'])
        await one.answer('b')
        assert.equal(one.underWay, 0)
        assert.equal(one.failures.length, 2)
      })

      test('is not made for a schedule that was cancelled while it waited', async () => {
        const one = new OneProcessor(clock, options)
        one.put('a')
        await settled()
        one.fire()
        one.put('b')
        one.cancel()
        await one.answer('a')
        await one.answer('b')
        assert.deepEqual(one.told, ['a…', 'a', 'b…', 'b'])
        assert.equal(one.underWay, 0)
      })

      test('lets no record in when its task has left the lane, and is not made itself', async () => {
        const one = new OneProcessor(clock, options)
        one.put('a')
        await settled()
        one.fire()
        one.put('b')
        one.task.close()
        await one.answer('a')
        assert.deepEqual(one.told, ['a…', 'a'])
        // Whoever counts them hears that they are over.
        assert.equal(one.underWay, 0)
      })
    })

test('a callback and calls that answer at once wait for nothing', () => {
  for (const clock of ['event-time', 'wall-clock'] as const) {
    const one = new OneProcessor(clock, {}, false)
    one.put('a')
    one.fire()
    one.put('b')
    one.fire()
    assert.deepEqual(one.told, ['a', 'callback', 'b', 'callback'])
    assert.equal(one.underWay, 0)
  }
})
