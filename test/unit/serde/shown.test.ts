/** Keys as people write them, and as the rows of stores show them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serdes } from '../../../src/index.ts'
import type { Serde } from '../../../src/serde/index.ts'
import { keyOfText, shownJson, textOfKey } from '../../../src/serde/shown.ts'

const date: Serde<Date> = {
  name: 'date',
  serialize: (value) => Buffer.from(value.toISOString()),
  deserialize: (bytes) => new Date(Buffer.from(bytes).toString()),
}

const keys: ReadonlyArray<readonly [serde: Serde<unknown>, keys: readonly unknown[]]> = [
  [serdes.string, ['', 'SFO', '5', 'null', '"q"', 'a\0', 'base64:AAAA', '🙂']],
  [serdes.int32, [0, -7, 2 ** 31 - 1]],
  [serdes.int64, [0n, -7n, 15_000_000_000_000_000n, 2n ** 62n]],
  [serdes.float64, [0, 0.5, Number.POSITIVE_INFINITY]],
  [serdes.bytes, [new Uint8Array(), Uint8Array.of(1, 2, 255), Buffer.from('text')]],
  [serdes.json(), [{ id: 1 }, [1, 'a'], 'text']],
  [date, [new Date(0), new Date(1_700_000_000_000)]],
] as ReadonlyArray<readonly [Serde<unknown>, readonly unknown[]]>

for (const [serde, some] of keys) {
  test(`a key of the serde ${serde.name} has a text that means it`, () => {
    for (const key of some) {
      const text = textOfKey(serde, key)
      assert.ok(text !== null, `${String(key)} has none`)
      const understood = keyOfText(serde, text)
      assert.ok(understood !== undefined, `${text} is not understood`)
      assert.equal(Buffer.compare(serde.serialize(understood.key), serde.serialize(key)), 0, text)
    }
  })
}

test('an integer means what it is shown as, with and without quotation marks', () => {
  const key = 15_000_000_000_000_000n
  assert.equal(shownJson(serdes.int64 as Serde<unknown>, key), String(key))
  for (const text of [String(key), `"${key}"`])
    assert.deepEqual(keyOfText(serdes.int64 as Serde<unknown>, text), { key })
})
