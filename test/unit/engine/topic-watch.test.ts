/** With high availability: what the group has said, or does not say, is looked for while a pod processes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineError } from '../../../src/base/errors.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import { GroupLink, type GroupLinkHost } from '../../../src/engine/group/group-link.ts'
import { RunOver } from '../../../src/engine/run.ts'
import { World } from './world.ts'

const everyMs = 1000

function following(lookUp: () => Promise<unknown>) {
  const world = new World()
  const run = Promise.withResolvers<void>()
  const told = { looks: 0, assigned: 0, failures: [] as unknown[] }
  const host: Partial<GroupLinkHost> = {
    assigned: async () => void told.assigned++,
    failed: (error) => void told.failures.push(error),
    runEnded: () => run.promise,
  }
  const options = { timers: world, settings: { ha: { groupMode: 'assign' }, metadataMaxAgeMs: everyMs } }
  const link = new GroupLink(options as unknown as EngineOptions, host as GroupLinkHost)
  const lookForNew = (): void => {
    link.lookForNew({
      lookUp: () => {
        told.looks++
        return lookUp()
      },
    })
  }
  return { world, run, told, link, lookForNew }
}

test('it is looked at once, since the group does not repeat what was passed over, and again and again', async () => {
  const { world, told, lookForNew } = following(async () => undefined)
  lookForNew()
  await world.settle()
  assert.equal(told.assigned, 1)
  await world.pass(3 * everyMs)
  assert.equal(told.assigned, 4)
  // A pod that begins anew in the same process looks once in that time, not twice.
  lookForNew()
  await world.pass(2 * everyMs)
  assert.equal(told.assigned, 7)
})

test('nobody looks once the run is over, or the pod has left', async () => {
  for (const how of ['run', 'leave'] as const) {
    const { world, run, told, link, lookForNew } = following(async () => undefined)
    lookForNew()
    await world.settle()
    if (how === 'run') run.resolve()
    else await link.leave()
    await world.pass(5 * everyMs)
    assert.deepEqual([told.looks, told.assigned], [1, 1], how)
  }
})

test('what cannot be looked up now is looked up later; an answer that comes after the run is nobody’s', async () => {
  const answers: Error[] = [
    new BrokerError('NETWORK', 'no answer', 'unreachable'),
    new EngineError('TOPIC_MISSING', 'the topic is gone'),
  ]
  const { world, told, lookForNew } = following(async () => {
    const error = answers.shift()
    if (error !== undefined) throw error
  })
  lookForNew()
  await world.pass(2 * everyMs)
  assert.deepEqual(told, { looks: 3, assigned: 1, failures: [] })
  answers.push(new RunOver('the run is over'))
  await world.pass(5 * everyMs)
  assert.deepEqual(told, { looks: 4, assigned: 1, failures: [] })
})

test('partitions that the state cannot take in end the engine', async () => {
  const changed = new EngineError('PARTITIONS_CHANGED', 'one more')
  const { world, told, lookForNew } = following(() => Promise.reject(changed))
  lookForNew()
  await world.pass(5 * everyMs)
  assert.deepEqual(told, { looks: 1, assigned: 0, failures: [changed] })
})
