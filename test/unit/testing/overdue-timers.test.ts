/** A timer that is asked for when its time has passed fires at the next instant, whatever else its task waits for. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { TopologyTestDriver } from '../../../src/testing/index.ts'
import {
  application,
  endsOf,
  expected,
  type Shape,
  type Step,
  stepsOf,
  toldByKey,
} from '../../support/overdue-timers.ts'

const partitions = 2
const steps = stepsOf(1, 2400, partitions)
const atOnce = [[...steps, ...endsOf(steps, partitions)]]
const inParts = [steps.slice(0, 700), steps.slice(700, 1500), steps.slice(1500), endsOf(steps, partitions)]

async function toldOf(shape: Shape, feeds: readonly Step[][], lanes: number) {
  const driver = new TopologyTestDriver(application(shape), { lanes, partitions })
  for (const [i, feed] of feeds.entries()) {
    if (i > 0) await driver.restart()
    await driver
      .input('steps')
      .pipeAll(feed.map(({ key, n, timestamp, partition }) => ({ key, value: n, timestamp, partition })))
  }
  const told = toldByKey(driver.output('told').readAll())
  driver.close()
  return told
}

const shapes: ReadonlyArray<readonly [about: string, shape: Shape]> = [
  ['by other timers', { again: true }],
  ['beside a function that answers soon', { beside: async () => undefined }],
  [
    'beside a function that takes its time',
    { again: true, beside: (n) => (n % 40 === 0 ? sleep(2) : Promise.resolve()) },
  ],
  ['set by a function that waits', { awaits: true }],
  ['behind a change of key', { rekeys: true, again: true }],
  ['behind a change of key, beside a function', { rekeys: true, beside: async () => undefined }],
]

describe('timers that are overdue when they are asked for fire at the next instant', () => {
  for (const [about, shape] of shapes) {
    for (const lanes of [1, 2]) {
      test(`${about}, ${lanes} lanes`, async () => {
        assert.deepEqual(await toldOf(shape, atOnce, lanes), expected(atOnce, partitions, shape))
      })

      test(`${about}, ${lanes} lanes, with starts between`, async () => {
        assert.deepEqual(await toldOf(shape, inParts, lanes), expected(inParts, partitions, shape))
      })
    }
  }
})
