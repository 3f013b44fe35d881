/** What every backend promises, run against each of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import type { ByteChange, Checkpoint, StoreBackend } from '../../../src/state/contract.ts'

export const checkpointAt = (offset: number): Checkpoint => ({
  changelogOffset: offset,
  commitId: `1.${offset}`,
  topicId: 'topic',
})

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')
const shown = (entries: Iterable<readonly [Uint8Array, Uint8Array]>): string[] =>
  [...entries].map(([key, value]) => `${text(key)}=${text(value)}`)

/** Short keys over few bytes, so that they meet and are prefixes of one another. */
const someKey = fc.array(fc.constantFrom(0, 1, 97, 255), { maxLength: 4 }).map((units) => Uint8Array.from(units))
const someValue = fc.uint8Array({ maxLength: 20 })

export function backendSuite(name: string, open: () => StoreBackend): void {
  describe(`the ${name} backend`, () => {
    test('gives back what was applied, and nothing else', () => {
      const backend = open()
      backend.apply(
        [
          [bytes('a'), bytes('1')],
          [bytes(''), bytes('empty key')],
          [bytes('b'), bytes('')],
        ],
        checkpointAt(3),
      )
      assert.equal(text(backend.get(bytes('a')) as Uint8Array), '1')
      assert.equal(text(backend.get(bytes('')) as Uint8Array), 'empty key')
      assert.equal(text(backend.get(bytes('b')) as Uint8Array), '')
      assert.equal(backend.get(bytes('c')), undefined)
      assert.equal(backend.entries(), 3)
      assert.deepEqual(backend.checkpoint(), checkpointAt(3))
      backend.close()
    })

    test('applies all changes or none', () => {
      const backend = open()
      backend.apply([[bytes('a'), bytes('1')]], checkpointAt(1))
      const broken = function* (): Iterable<ByteChange> {
        yield [bytes('a'), bytes('2')]
        yield [bytes('b'), bytes('2')]
        throw new TypeError('the source of the changes failed')
      }
      assert.throws(() => backend.apply([...broken()], checkpointAt(2)))
      assert.deepEqual(shown(backend.range(undefined, undefined)), ['a=1'])
      assert.deepEqual(backend.checkpoint(), checkpointAt(1))
      backend.close()
    })

    test('forgets everything when wiped, and can go on', () => {
      const backend = open()
      backend.apply([[bytes('a'), bytes('1')]], checkpointAt(1))
      backend.wipe()
      assert.equal(backend.checkpoint(), undefined)
      assert.equal(backend.entries(), 0)
      assert.deepEqual(shown(backend.range(undefined, undefined)), [])
      backend.apply([[bytes('b'), bytes('2')]], checkpointAt(2))
      assert.deepEqual(shown(backend.range(undefined, undefined)), ['b=2'])
      backend.close()
    })

    test('walks many rows both ways while rows come and go', () => {
      const backend = open()
      const rows: ByteChange[] = []
      for (let i = 0; i < 1000; i++) rows.push([bytes(String(i).padStart(4, '0')), bytes('x')])
      backend.apply(rows, checkpointAt(1))
      const seen: string[] = []
      for (const [key] of backend.range(bytes('0100'), bytes('0900'))) {
        seen.push(text(key))
        if (seen.length % 100 === 0) backend.apply([[bytes(text(key)), null]], checkpointAt(1))
      }
      assert.equal(seen.length, 800)
      assert.equal(backend.entries(), 992)
      const down = [...backend.range(bytes('0100'), bytes('0900'), true)].map(([key]) => text(key))
      assert.equal(down.length, 792)
      assert.deepEqual(down, [...down].sort().reverse())
      backend.close()
    })

    test('agrees with a sorted map under any changes and ranges', () => {
      const change = fc.tuple(someKey, fc.option(someValue))
      const property = fc.property(
        fc.array(fc.array(change, { maxLength: 20 }), { maxLength: 5 }),
        fc.option(someKey, { nil: undefined }),
        fc.option(someKey, { nil: undefined }),
        (commits, from, to) => {
          const backend = open()
          const model = new Map<string, string>()
          commits.forEach((changes, i) => {
            backend.apply(changes, checkpointAt(i))
            for (const [key, value] of changes) {
              if (value === null) model.delete(text(key))
              else model.set(text(key), text(value))
            }
          })
          const expected = [...model]
            .filter(([key]) => (from === undefined || key >= text(from)) && (to === undefined || key < text(to)))
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, value]) => `${key}=${value}`)
          assert.deepEqual(shown(backend.range(from, to)), expected)
          assert.deepEqual(shown(backend.range(from, to, true)), expected.reverse())
          assert.equal(backend.entries(), model.size)
          for (const [key, value] of model) assert.equal(text(backend.get(bytes(key)) as Uint8Array), value)
          backend.wipe()
          backend.close()
        },
      )
      fc.assert(property, { numRuns: 60 })
    })
  })
}
