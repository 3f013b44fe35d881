/** What stands where a function, a name or options belong is told by what it is, before anything runs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes, session, tumbling } from '../../../src/index.ts'
import { messageOf } from '../../../src/base/errors.ts'

const text = { key: serdes.string, value: serdes.string }

/** As somebody writes it whom no types hold. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any

function refused(build: (stream: Untyped, topology: Untyped) => unknown, message: RegExp): void {
  const app = defineApp({
    applicationId: 'given',
    build: (topology) => build(topology.stream('in', text), topology) as undefined,
  })
  assert.throws(() => app.compile(), { code: 'TOPOLOGY_INVALID', message })
}

describe('a function that is none', () => {
  test('is told by its operator', () => {
    refused(
      (s) => s.mapValues(undefined).to('out'),
      /KSTREAM-MAPVALUES-0000000001 has undefined for its function; give a function/,
    )
    refused((s) => s.map('key', { name: 'keys' }).to('out'), /keys has the text 'key' for its function/)
    refused((s) => s.filter(null).to('out'), /FILTER-0000000001 has null for its predicate/)
    refused(
      (s) => s.groupBy({ name: 'city' }).count().toStream().to('out'),
      /KEY-SELECT.* an object named city for its function/,
    )
    refused((s) => s.split({ large: 5 }), /the branch 'large' of KSTREAM-BRANCH-0000000001 has 5 for its predicate/)
    refused((s) => s.split({ large: { name: 'big' } }), /the branch 'large' of .* has undefined for its predicate/)
  })

  test('is told of aggregates, the first one of which would be missing otherwise', () => {
    const none = /an aggregate has undefined for the function that makes the first one; give a function/
    refused(
      (s) =>
        s
          .groupByKey()
          .aggregate(undefined, () => 1)
          .toStream()
          .to('out'),
      none,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .windowedBy(tumbling('1m'))
          .aggregate(undefined, () => 1)
          .toStream()
          .to('out'),
      none,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .windowedBy(session('1m'))
          .aggregate(
            undefined,
            () => 1,
            () => 1,
          )
          .toStream()
          .to('out'),
      none,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .cogroup(() => 1)
          .aggregate()
          .toStream()
          .to('out'),
      none,
    )
    refused(
      (s) =>
        s
          .toTable()
          .groupBy(() => ['a', 'b'])
          .aggregate(
            undefined,
            () => 1,
            () => 1,
          )
          .toStream()
          .to('out'),
      none,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .aggregate(() => 0)
          .toStream()
          .to('out'),
      /has undefined for the function that folds a value in/,
    )
    refused(
      (s) => s.groupByKey().reduce().toStream().to('out'),
      /a reduce has undefined for the function that folds a value in/,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .windowedBy(session('1m'))
          .aggregate(
            () => 0,
            () => 1,
          )
          .toStream()
          .to('out'),
      /has undefined for the function that merges two sessions/,
    )
    refused(
      (s) =>
        s
          .toTable()
          .groupBy(() => ['a', 'b'])
          .reduce(() => 1)
          .toStream()
          .to('out'),
      /has undefined for the function that takes a row out/,
    )
  })

  test('is told of joins', () => {
    const none = /has undefined for the function that joins two values; give a function/
    refused((s, t) => s.join(t.table('rows', text)).to('out'), none)
    refused((s, t) => s.leftJoin(t.stream('others', text), undefined, { within: '1m' }).to('out'), none)
    refused((s, t) => s.toTable().outerJoin(t.table('rows', text)).toStream().to('out'), none)
  })
})

describe('what is none of what belongs there', () => {
  test('names, topics and options', () => {
    refused((s) => s.mapValues(() => 1, { name: 5 }).to('out'), /a name is a text, and 5 is none/)
    refused(
      (s) => s.mapValues(() => 1, 'rated').to('out'),
      /mapValues has the text 'rated' for its options; give an object/,
    )
    refused((s) => s.process(() => () => undefined, null).to('out'), /process has null for its options; give an object/)
    refused((s) => s.to(undefined), /undefined is not the name of a topic/)
    refused((s) => s.to('a topic'), /"a topic" is not the name of a topic/)
    refused((_, t) => t.stream(undefined, text).to('out'), /undefined is not the name of a topic/)
    refused((s) => s.groupByKey().count({ store: 5 }).toStream().to('out'), /a store is 5; give its name, or an object/)
  })

  test('windows, suppression, branches, and when results are told', () => {
    refused(
      (s) => s.groupByKey().windowedBy(undefined).count(),
      /windowedBy is given undefined; give what tumbling\(…\)/,
    )
    refused(
      (s) =>
        s
          .groupByKey()
          .cogroup(() => 1)
          .windowedBy('1m')
          .aggregate(() => 0),
      /windowedBy is given the text '1m'/,
    )
    refused((s) => s.toTable().suppress(), /suppress is not told until when/)
    refused((s) => s.split(), /split is given undefined; give a predicate for each branch/)
    const [aTable, aWindow] = [
      /'on-close'; give one of 'on-update', 'per-commit'$/,
      /'closed'; give one of .*'on-close'$/,
    ]
    refused((s) => s.groupByKey().count({ emit: 'on-close' }), aTable)
    refused((s) => s.groupByKey().windowedBy(tumbling('1m'), { emit: 'closed' }).count(), aWindow)
  })

  test('an asynchronous build, which would lose what stands behind an await', () => {
    refused(async (s) => {
      await undefined
      s.to('out')
    }, /the build function gives a promise, .* await what it needs at the top of the module/)
  })
})

test('what was thrown and is no error is told by its message, or as it is', () => {
  assert.equal(messageOf({ message: 'no such order', status: 404 }), 'no such order')
  assert.equal(messageOf({ status: 404 }), '{"status":404}')
  assert.equal(messageOf({ toString: () => 'a text of its own' }), 'a text of its own')
  assert.equal(messageOf({ long: 'x'.repeat(5000) }).length, 1000)
  const circle: { self?: unknown } = {}
  circle.self = circle
  assert.equal(messageOf(circle), 'what was thrown has no text')
  assert.equal(messageOf(undefined), 'undefined')
})
