import assert from 'node:assert/strict'
import { expectJson, expectKeys, jsonType, textType } from '../support/expect.ts'
import type { Json } from '../support/client.ts'
import type { Row } from '../support/subject.ts'
import { expectError } from '../support/expect.ts'

const accept = { accept: 'application/json' }
const accepts: ReadonlyArray<readonly [accept: string | undefined, type: string]> = [
  [undefined, textType],
  ['application/json', jsonType],
  ['text/plain', textType],
  ['text/html', textType],
  ['*/*', textType],
  ['image/png', textType],
  ['application/json;q=0.2, text/plain;q=0.1', jsonType],
  ['application/json;q=0.1, text/plain;q=0.2', textType],
  ['text/plain, application/json', textType],
  ['application/json, text/plain', jsonType],
  ['*/*, application/json', jsonType],
  ['application/json;version=1', jsonType],
  ['application/json;q=0', textType],
]

export const section26: readonly Row[] = [
  ...['/topology', '/topology/ks', '/topology/compiled'].flatMap((path) =>
    accepts.map(
      ([wish, type]): Row => ({
        rules: ['4.1.topology', 'R10', 'R38', '4.topology', '4.topology-ks', '4.topology-compiled'],
        name: `${path} with Accept ${wish ?? 'unset'} is ${type.split(';')[0]}`,
        check: async (instance) => {
          const answer = await instance.ask({ path, headers: wish === undefined ? {} : { accept: wish } })
          assert.equal(answer.status, 200)
          assert.equal(answer.headers['content-type'], type)
          assert.equal(answer.headers.vary, 'Accept')
          if (type === jsonType) assert.equal(typeof answer.json, 'object')
          else assert.ok(answer.body.length > 10)
        },
      }),
    ),
  ),
  {
    rules: ['2.6.topology', 'R31'],
    name: '/topology tells scheduled sources, sub-topologies with their stores, and how boundaries are crossed',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/topology', headers: accept })
      assert.ok(Array.isArray(json.scheduledSources))
      assert.ok(Array.isArray(json.subtopologies))
      for (const scheduled of json.scheduledSources as unknown as Json[])
        expectKeys(scheduled, ['name', 'everyMs', 'cron'])
      for (const subtopology of json.subtopologies as unknown as Json[]) {
        expectKeys(subtopology, ['id', 'sources', 'processors', 'sinks', 'stores'])
        for (const processor of subtopology.processors as unknown as Json[]) expectKeys(processor, ['name', 'stores'])
      }
      for (const boundary of json.boundaries as unknown as Json[])
        assert.match(String(boundary.kind), /^(in-process|topic)$/)
    },
  },
  {
    rules: ['R31', '2.6.topology'],
    name: 'the boundary is in process or a topic, as the split has it',
    given: (engine) => {
      engine.split = 'repartition-topics'
    },
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/topology', headers: accept })
      assert.equal((json.boundaries as unknown as Json[])[0]?.kind, 'topic')
      const text = await instance.ask({ path: '/topology' })
      assert.match(text.body, /through topic counts-repartition/)
    },
  },
  {
    rules: ['2.6.ks-text', 'R15'],
    name: 'the ks text is of the lines that viewers know',
    check: async (instance) => {
      const { body } = await instance.ask({ path: '/topology/ks' })
      const [head, ...lines] = body.split('\n')
      assert.equal(head, 'Topologies:')
      const known = [
        /^ {3}Sub-topology: \d+( for global store \(will not generate tasks\))?$/,
        /^ {2}Sub-topology: \d+( for global store \(will not generate tasks\))?$/,
        /^ {4}Source: \S+ \(topics: (\[[^\]]*\]|.+)\)$/,
        /^ {4}Processor: \S+ \(stores: \[[^\]]*\]\)$/,
        /^ {4}Sink: \S+ \((topic: .+|extractor class: .+)\)$/,
        /^ {6}(-->|<--) (none|\S+(, \S+)*)$/,
        /^ *$/,
      ]
      for (const line of lines)
        assert.ok(
          known.some((pattern) => pattern.test(line)),
          JSON.stringify(line),
        )
    },
  },
  {
    rules: ['R31', 'R32', '2.6.ks-text'],
    name: 'a boundary shows as a repartition, a scheduled source without topics',
    check: async (instance) => {
      const { body } = await instance.ask({ path: '/topology/ks' })
      assert.match(body, /Sink: counts-repartition-sink \(topic: counts-repartition\)/)
      assert.match(body, /Source: counts-repartition-source \(topics: \[counts-repartition\]\)/)
      assert.match(body, /Source: heartbeats \(topics: \[\]\)/)
      assert.match(body, /Processor: KSTREAM-AGGREGATE-\d{10} \(stores: \[counts\]\)/)
    },
  },
  {
    rules: ['2.6.ks-json', 'R16', 'R48'],
    name: 'the ks JSON leaves keys out rather than empty',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/topology/ks', headers: accept })
      assert.ok(!('globalStores' in json) || (json.globalStores as unknown as unknown[]).length > 0)
      for (const subtopology of json.subtopologies as unknown as Json[]) {
        assert.equal(typeof subtopology.id, 'number')
        for (const node of subtopology.nodes as unknown as Json[]) {
          const type = String(node.type)
          assert.match(type, /^(source|processor|sink)$/)
          if (type === 'source') assert.ok(!('predecessors' in node))
          if (type === 'sink') assert.ok(!('successors' in node))
          if (type !== 'processor') assert.ok(!('stores' in node))
          assert.equal('topics' in node, type === 'source')
          for (const list of ['stores', 'successors', 'predecessors']) {
            if (list in node) assert.ok((node[list] as unknown as unknown[]).length > 0, `${list} of ${node.name}`)
          }
          if (type === 'sink') assert.equal('topic' in node, !('topicNameExtractor' in node))
          if ('topicNameExtractor' in node) assert.equal(typeof node.topicNameExtractor, 'string')
        }
      }
    },
  },
  {
    rules: ['2.6.compiled', '9.compiled'],
    name: 'the compiled view tells graphs, boundaries, timers and schedules',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/topology/compiled', headers: accept })
      expectJson(answer)
      expectKeys(answer.json, ['sources', 'subtopologies', 'boundaries', 'timerAwareProcessors', 'scheduledSources'])
      for (const source of answer.json.sources as unknown as Json[]) {
        assert.ok((source.graph as unknown as unknown[]).length > 0)
      }
    },
  },
  ...(['CREATED', 'STARTING'] as const).map(
    (state): Row => ({
      rules: ['4.topology-compiled', '7.503', '4.topology'],
      name: `in ${state} the topology is known, the compiled view is 503`,
      when: { state },
      check: async (instance) => {
        assert.equal((await instance.ask({ path: '/topology' })).status, 200)
        assert.equal((await instance.ask({ path: '/topology/ks' })).status, 200)
        expectError(await instance.ask({ path: '/topology/compiled' }), 503, /not started/)
      },
    }),
  ),
  ...(['STOPPING', 'FAILED'] as const).map(
    (state): Row => ({
      rules: ['4.topology-compiled'],
      name: `in ${state} the compiled view of what had started stays`,
      when: { state },
      check: async (instance) => assert.equal((await instance.ask({ path: '/topology/compiled' })).status, 200),
    }),
  ),
]
