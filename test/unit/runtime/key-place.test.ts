import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keySlot } from '../../../src/base/hash.ts'
import { compile, serdes } from '../../../src/index.ts'
import { elsewhere } from '../../../src/runtime/data/key-place.ts'
import type { GroupPlaces } from '../../../src/view/view.ts'

const topology = compile((builder) => {
  builder.stream('events', { key: serdes.string, value: serdes.json() }).groupByKey().count({ store: 'counts' })
  builder.globalTable('settings', { store: 'settings', key: serdes.string, value: serdes.json() })
})
const counts = topology.subtopologies.find(({ stores }) => stores.includes('counts'))?.id ?? -1
const taskCount = 4
const task = `${counts}_${keySlot(Buffer.from('k')) % taskCount}`
const tasks = topology.subtopologies.map(() => taskCount)
const nobody: GroupPlaces = { tasks, own: [], isTold: true, others: [] }
const at = (places: Partial<GroupPlaces> | null, store = 'counts', key = 'k') =>
  elsewhere(topology, places && { ...nobody, ...places }, store, key)

test('a key belongs here when its task does, in a global store always', () => {
  assert.equal(at({ own: [task] }), undefined)
  assert.equal(at({}, 'settings'), undefined)
})

test('a key of another process is told with the address at which it announces itself', () => {
  const others = [
    { address: 'http://10.0.0.1:8080', tasks: [`${counts}_99`] },
    { address: 'http://10.0.0.2:8080', tasks: [task] },
  ]
  const found = at({ others })
  assert.deepEqual([found?.refused, found?.address], [421, 'http://10.0.0.2:8080'])
  assert.match(found?.reason ?? '', new RegExp(`has the task ${task} of this key: ask http://10\\.0\\.0\\.2:8080`))
})

test('where it does not announce itself, the answer names the setting', () => {
  for (const places of [
    { others: [{ address: null, tasks: [task] }] },
    { isTold: false, others: [{ address: null, tasks: [] }] },
  ]) {
    const found = at(places)
    assert.deepEqual([found?.refused, found?.address], [421, undefined])
    assert.match(found?.reason ?? '', /runtime\.http\.advertised-address/)
  }
})

test('a process that does not know says so, and to ask again', () => {
  const moving = at({ others: [{ address: 'http://10.0.0.1:8080', tasks: [] }] })
  assert.equal(moving?.refused, 503)
  assert.match(moving?.reason ?? '', /is being given to another process; retry soon/)
  const outside = at(null)
  assert.equal(outside?.refused, 503)
  assert.match(outside?.reason ?? '', /no place in its group yet/)
})
