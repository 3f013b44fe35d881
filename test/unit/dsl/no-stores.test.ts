/** What stands where a store, a function or a stream belongs, and is none: types do not hold those who write JavaScript. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, defineApp, EngineError, keyValueStore, serdes, type Topology } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const settings = { key: serdes.string, value: serdes.json<number>() }
const plain = { name: 'seen', ...settings }
const idle = () => () => undefined

function refused(build: (topology: Topology) => void, message: RegExp): void {
  assert.throws(
    () => compile(build),
    (error) => {
      assert.equal(EngineError.is(error) && error.code, 'TOPOLOGY_INVALID', String(error))
      assert.match((error as EngineError).message, message)
      return true
    },
  )
}

for (const operator of ['process', 'processValues'] as const) {
  describe(operator, () => {
    const built =
      (options: unknown, factory: unknown = idle) =>
      (topology: Topology) => {
        const stream = topology.stream('in', settings)
        // As JavaScript sees it.
        const methods = stream as unknown as Record<string, (factory: unknown, options: unknown) => unknown>
        methods[operator]?.call(stream, factory, options)
      }

    test('refuses what is no store, by the name of the processor', () => {
      const cases: ReadonlyArray<readonly [unknown, string]> = [
        [plain, 'an object named seen'],
        [undefined, 'undefined'],
        [null, 'null'],
        [7, '7'],
        [keyValueStore, 'a function'],
        [[keyValueStore('seen')], 'a list'],
      ]
      for (const [store, what] of cases) {
        const message = new RegExp(`^the processor counts has ${what} among its stores; give what keyValueStore`)
        refused(built({ name: 'counts', stores: [keyValueStore('other'), store] }), message)
        const global = new RegExp(`^the processor counts has ${what} among its globalStores; give names of global`)
        refused(built({ name: 'counts', globalStores: [store] }), global)
      }
    })

    test('refuses a store, or a name, that is in no list', () => {
      refused(
        built({ name: 'counts', stores: keyValueStore('seen') }),
        /^the processor counts has an object named seen for its stores; give a list: \{ stores: \[…\] \}$/,
      )
      refused(
        built({ name: 'counts', globalStores: 'rates' }),
        /^the processor counts has the text 'rates' for its globalStores; give a list/,
      )
    })

    test('refuses what makes no processor', () => {
      refused(
        built({ name: 'counts' }, null),
        /^the processor counts is made by null; give a function that returns it$/,
      )
    })
  })
}

test('addStore and globalStore refuse what is no store, and a store refuses what is no name', () => {
  for (const store of [plain, undefined] as never[]) {
    refused((topology) => topology.addStore(store), /^addStore is given .+; give what keyValueStore\(…\)/)
    refused(
      (topology) => topology.globalStore('rates', store),
      /^the global store of rates is .+; give what keyValueStore\(…\) returns$/,
    )
  }
  refused(() => keyValueStore(undefined as never), /^a store has undefined for its name; give a text/)
})

test('merge refuses what is no stream', () => {
  refused((topology) => {
    topology.stream('in', settings).merge(undefined as never)
  }, /^a stream is merged with a stream; this is none$/)
})

test('a processor that asks for no store by name is told so', async () => {
  const application = defineApp({
    applicationId: 'no-store',
    build: (topology) => {
      topology.stream('in', settings).processValues(
        (context) => {
          context.store(undefined as never)
          return () => undefined
        },
        { name: 'counts' },
      )
    },
  })
  const driver = new TopologyTestDriver(application)
  await assert.rejects(
    async () => driver.input('in').pipe('a', 1),
    /counts uses the store undefined, which its options/,
  )
})
