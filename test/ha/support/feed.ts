/** A live feed into `running-sum`, and the proof that every number came out once, in its order. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { byKey } from '../../engine/support/engine.ts'
import type { Pods } from './pods.ts'

const keys = 10
const everyMs = 10

export class Feed {
  readonly #pods: Pods
  #sent = 0
  #stopped = false
  readonly #running: Promise<void>

  private constructor(pods: Pods) {
    this.#pods = pods
    this.#running = this.#run()
  }

  static start(pods: Pods): Feed {
    const feed = new Feed(pods)
    pods.endsWith(() => feed.stop())
    return feed
  }

  async stop(): Promise<number> {
    this.#stopped = true
    await this.#running
    return this.#sent
  }

  /** Records sent from now on come out. */
  async flowing(withinMs?: number): Promise<void> {
    const sent = this.#sent
    await this.#pods.until('the feed comes out', async () => (await this.#out()) > sent, withinMs)
  }

  /** Ends the feed; every number of it is there, once and in order. */
  async complete(): Promise<void> {
    const sent = await this.stop()
    await this.#pods.until('all of the feed is out', async () => (await this.#out()) >= sent)
    const seen = byKey<number[]>(await this.#pods.read('seen'))
    const expected = new Map<string, number[]>()
    for (let n = 0; n < sent; n++) expected.set(keyOf(n), [...(expected.get(keyOf(n)) ?? []), n])
    for (const [key, numbers] of expected) {
      const lists = seen[key] ?? []
      assert.equal(lists.length, numbers.length, `${key}: one result for every number`)
      assert.deepEqual(lists.at(-1), numbers)
    }
    const sums = byKey<number>(await this.#pods.read('sums'))
    for (const rest of [0, 1, 2]) {
      const numbers = Array.from({ length: sent }, (_, n) => n).filter((n) => n % 3 === rest)
      assert.equal(sums[`mod-${rest}`]?.length ?? 0, numbers.length)
      assert.equal(
        sums[`mod-${rest}`]?.at(-1) ?? 0,
        numbers.reduce((a, b) => a + b, 0),
      )
    }
  }

  async #out(): Promise<number> {
    const [info] = await this.#pods.client.topics(['sums'])
    if (!info) return 0
    return (await this.#pods.read('sums')).length
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const n = this.#sent
      await this.#pods.put('numbers', [{ key: keyOf(n), value: n }])
      this.#sent++
      await sleep(everyMs)
    }
  }
}

function keyOf(n: number): string {
  return `key-${n % keys}`
}
