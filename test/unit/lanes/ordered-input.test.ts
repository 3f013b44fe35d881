/** The order in which a deeper level takes what comes to it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OrderedInput } from '../../../src/lanes/levels/ordered-input.ts'
import type { Work } from '../../../src/lanes/levels/level-state.ts'
import type { Place } from '../../../src/lanes/levels/place.ts'
import { TransferReader, TransferWriter } from '../../../src/lanes/transfer.ts'

interface Entry extends Place {
  /** By which the test tells it from others of its place. */
  readonly id: number
}

function push(input: OrderedInput, entries: readonly Entry[]): void {
  const writer = new TransferWriter(4096)
  for (const { at, seq, sub, id } of entries) {
    const nothing = [null, -1, -1, null, -1, -1, null, 0, 0] as const
    writer.append(0, 0, -1, -1, id, at, at, ...nothing, at, seq, sub)
  }
  const { length, records, isInOrder } = writer
  const last = entries.at(-1) as Place
  const reader = new TransferReader(writer.take(), length)
  const work: Work = { reader, epoch: 1, watermark: 0, seq: 0, bytes: length, records }
  input.push(0, { type: 'work', work, isInOrder, isOrdered: true, last })
}

function taken(input: OrderedInput): number[] {
  const ids: number[] = []
  const nothing = (): void => undefined
  input.drain(
    100,
    ({ reader }) => ids.push(reader.offset),
    nothing,
    nothing,
    () => false,
  )
  return ids
}

describe('the input of a deeper level', () => {
  test('keeps what passes on for one record in the order in which it was sent, however it was packed', () => {
    const input = new OrderedInput(1, 1, () => undefined)
    push(input, [
      { at: 1, seq: 1, sub: 0, id: 1 },
      { at: 1, seq: 3, sub: 0, id: 3 },
    ])
    // Out of order behind the first: a run of its own. The last one and the next message's are of one record.
    push(input, [
      { at: 1, seq: 2, sub: 0, id: 2 },
      { at: 1, seq: 4, sub: 0, id: 4 },
    ])
    push(input, [{ at: 1, seq: 4, sub: 0, id: 5 }])
    input.push(0, { type: 'progress', watermark: 9, seq: 9 })
    assert.deepEqual(taken(input), [1, 2, 3, 4, 5])
  })
})
