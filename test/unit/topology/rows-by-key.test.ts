import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, serdes, type Topology } from '../../../src/index.ts'
import { rowsByKey } from '../../../src/topology/keys/rows-by-key.ts'

const text = { key: serdes.string, value: serdes.string }

const storesOf = (build: (topology: Topology) => void): Array<string | undefined> => {
  const compiled = compile(build)
  return compiled.sources.map((source) => rowsByKey(compiled, source))
}

describe('rows that records meet by the key they come with', () => {
  test('are those of a table and of a join with it, behind steps that leave the key alone', () => {
    const stores = storesOf((topology) => {
      const users = topology.table('users', { ...text, store: 'users' })
      topology
        .stream('ev', text)
        .filter(() => true)
        .mapValues(String)
        .join(users, (event, user) => event + user)
        .to('out')
    })
    assert.deepEqual(stores, ['users', 'users'])
  })

  test('are those of an aggregate, on either side of a boundary', () => {
    const stores = storesOf((topology) => {
      topology
        .stream('a', text)
        .groupByKey()
        .count({ store: { name: 'by-key', value: serdes.count } })
      topology
        .stream('b', text)
        .groupBy((value) => value, { key: serdes.string })
        .count({ store: { name: 'by-value', value: serdes.count } })
    })
    assert.deepEqual(stores, ['by-key', undefined, 'by-value'])
  })

  test('are none where the key changes before, where another value names the row, and where rows have windows', () => {
    const stores = storesOf((topology) => {
      const rows = topology.globalTable('rows', { ...text, store: 'rows' })
      topology
        .stream('a', text)
        .join(rows, (value) => value, { on: (value) => value })
        .to('out')
      topology.stream('b', text).to('out')
    })
    assert.ok(stores.every((store) => store === undefined))
  })
})
