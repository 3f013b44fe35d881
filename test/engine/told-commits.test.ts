/** What the coordinator of high availability, on the thread that answers people, is told of commits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, serdes } from '../../src/index.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) => topology.stream('in', { key: serdes.string, value: serdes.json<number>() }).to('out'),
  })

test('high availability is told of commits, and of few where they come one behind the other', async () => {
  let commits = 0
  const engine = new VirtualEngine({
    compile: () => application().compile(),
    settings: { ha: { podId: 'one', groupMode: 'join' } },
    tamper: (name, args, call) => {
      if (name === 'endTransaction') commits++
      return call(args)
    },
  })
  await engine.start()
  await engine.until('it stands by', () => engine.count('standby') > 0)
  engine.command({ type: 'ha-promote', tokenEpoch: 3, paused: false })
  await engine.until('it has the identity', () => engine.count('identity-taken') > 0)
  engine.command({ type: 'ha-proceed', tokenEpoch: 3 })
  await engine.runs()
  for (let value = 0; value < 100; value++) {
    await engine.put('in', [{ key: 'a', value }])
    await engine.settled()
  }
  const told = engine.facts.flatMap((fact) => (fact.type === 'committed' ? [fact.commitId] : []))
  const numbers = told.map((id) => Number(id.slice('3.'.length)))
  assert.ok(commits >= 100)
  assert.ok(told.length > 0 && told.length < commits / 2, `${told.length} of ${commits} are told`)
  assert.ok(told.every((id) => id.startsWith('3.')))
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  )
})
