/** How records flow, what stores hold, and what became of records that could not be processed. */
import { type CountersView, storeSlot, storeSlots } from '../../base/counters.ts'
import { answerOf } from '../../view/diagnosis/answer.ts'
import { type DeadLetterFilter, isRefused, type Refused } from '../data-seam.ts'
import type { Parameter, ParameterValues } from './parameters.ts'
import { error, json, type Reply } from './reply.ts'
import { type Route, type RouteServices, routeDefaults } from './route.ts'
import type { Answer } from './schemas.ts'

export const flowRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/flow',
    needs: 'engine',
    sensitive: true,
    parameters: [
      {
        name: 'history',
        type: 'boolean',
        default: false,
        doc: 'with a line of totals every five seconds, for a quarter of an hour',
      },
    ],
    failures: [400, 503],
    schema: 'Flow',
    summary: 'Records per second by topic, node and lane',
    doc: 'How fast records move, over the last ten seconds, and how each stage spends its time (as in `/why`). Counted by the threads themselves: nobody is asked.',
    handle: (services, { parameters }) => {
      const stages = answerOf(services.why()).flow
      return json<Answer<'Flow'>>(200, services.flow(stages, parameters.history === true))
    },
  },
  {
    ...routeDefaults,
    path: '/stores',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'Stores',
    summary: 'State stores: rows, bytes, reads, writes, restore progress',
    doc: 'Every store of the application with what its partitions in this process hold. It shows no rows.',
    handle: (services) => json<Answer<'Stores'>>(200, { rowsShown: services.rowsShown, stores: storesOf(services) }),
  },
]

const limit: Parameter = {
  name: 'limit',
  type: 'integer',
  min: 1,
  max: 1000,
  default: 100,
  doc: 'most rows of an answer',
}

export const dataRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/stores/{name}',
    gate: 'stores',
    needs: 'engine',
    sensitive: true,
    parameters: [
      { name: 'name', type: 'text', in: 'path', maxLength: 255, doc: 'name of the store' },
      {
        name: 'key',
        type: 'text',
        maxLength: 1024,
        doc: 'the rows of this key: JSON, or else plain text (`SFO`, `"5"`, `""` for the empty one, `{"id":1}`), or `base64:` and its bytes',
      },
      {
        name: 'from',
        type: 'text',
        maxLength: 1024,
        doc: 'key-value stores: the first key, by the order of its bytes; window and session stores: an instant, ISO 8601 or epoch milliseconds',
      },
      { name: 'to', type: 'text', maxLength: 1024, doc: 'the last key or instant, included' },
      limit,
    ],
    failures: [400, 404, 421, 503],
    schema: 'StoreRows',
    summary: 'Committed rows of a store',
    doc: 'What `runtime.store(name)` gives, as JSON by the serdes of the store: committed rows only, of the partitions that this process has. `next` is what to give as `from` for the next page, as it is: a key, and where a page ends within the rows of one key, which a processor may put into several partitions, `@partition:` and a number behind it. Where several processes share the partitions and another one has the key, by the hash that Kafka chooses partitions by, the answer is 421 with its `address`, if it announces one (`runtime.http.advertised-address`); while nobody has the key yet, as in a rebalance, it is 503.',
    handle: async ({ data }, { parameters }) => {
      const { name, key, from, to } = texts(parameters)
      const question = { ...(key !== undefined && { key }), ...(from !== undefined && { from }) }
      const rest = { ...(to !== undefined && { to }), limit: Number(parameters.limit) }
      return answered<Answer<'StoreRows'>>(await data?.rows(name ?? '', { ...question, ...rest }))
    },
  },
  {
    ...routeDefaults,
    path: '/dead-letters',
    gate: 'deadLetters',
    needs: 'engine',
    sensitive: true,
    parameters: [...filterParameters(), { ...limit, doc: 'most letters of an answer' }],
    failures: [400, 404, 503],
    schema: 'DeadLetters',
    summary: 'Dead letters, newest first',
    doc: 'The newest records of the dead-letter topic: why each went there, the record it was made of, key, value and headers. Each partition is read from its end backwards, until all that comes is older than what was found: where timestamps do not rise within a partition, a newer letter may be passed over that was written well before older ones. Beside `/dead-letters/redrive` this endpoint alone asks the broker; while that does not show all of them, and once it has not answered for `broker.request-timeout`, the answer is 503.',
    handle: async ({ data }, { parameters }) => {
      const filter = filterOf(parameters)
      if ('fault' in filter) return error(400, filter.fault)
      return answered<Answer<'DeadLetters'>>(await data?.deadLetters(filter, Number(parameters.limit)))
    },
  },
  {
    ...routeDefaults,
    method: 'POST',
    path: '/dead-letters/redrive',
    gate: 'deadLetters',
    needs: 'engine',
    sensitive: true,
    parameters: [
      ...filterParameters(),
      { name: 'dry-run', type: 'boolean', default: true, doc: 'only say what would be done' },
      {
        ...limit,
        doc: 'most letters that one call puts back; it puts back fewer where their records take more than 8 MiB',
      },
      {
        name: 'ends',
        type: 'text',
        maxLength: 1900,
        doc: '`ends` of the answer before: letters that were written since are not meant',
      },
    ],
    failures: [400, 404, 503],
    schema: 'Redriven',
    summary: 'Puts dead letters back into the topics that they came from',
    doc: 'The record that a letter was made of is written again, to the same partition, with its own key, value, headers and timestamp, in one transaction with a note that it was (topic `<dead-letter topic>-redriven`). Whatever happens meanwhile, no letter is put back twice: while the notes cannot be read to their end nothing is put back, and the answer is 503. It is 503 as well once the broker has not answered for `broker.request-timeout`; the sentence says whether letters may have been put back all the same. Ask again, with the `ends` of the answer, until `more` is false.',
    handle: async ({ data }, { parameters }) => {
      const filter = filterOf(parameters)
      if ('fault' in filter) return error(400, filter.fault)
      const { ends } = texts(parameters)
      if (ends !== undefined && !/^\d+:\d+(,\d+:\d+)*$/.test(ends)) {
        return error(400, "parameter 'ends' must be what an answer had there, as in 0:17,1:4")
      }
      const how = { dryRun: parameters['dry-run'] === true, limit: Number(parameters.limit) }
      return answered<Answer<'Redriven'>>(await data?.redrive(filter, { ...how, ...(ends !== undefined && { ends }) }))
    },
  },
]

function filterParameters(): readonly Parameter[] {
  return [
    { name: 'reason', type: 'text', maxLength: 255, doc: 'only those of this class of error' },
    { name: 'topic', type: 'text', maxLength: 255, doc: 'only those of records of this topic' },
    {
      name: 'since',
      type: 'text',
      maxLength: 64,
      doc: 'only of this event time or later, ISO 8601 or epoch milliseconds',
    },
    { name: 'until', type: 'text', maxLength: 64, doc: 'only of this event time or earlier' },
  ]
}

function filterOf(parameters: ParameterValues): DeadLetterFilter | { readonly fault: string } {
  const { reason, topic, since, until } = texts(parameters)
  const fromMs = since === undefined ? undefined : instantOf(since)
  const toMs = until === undefined ? undefined : instantOf(until)
  if (Number.isNaN(fromMs)) return { fault: "parameter 'since' must be an instant, ISO 8601 or epoch milliseconds" }
  if (Number.isNaN(toMs)) return { fault: "parameter 'until' must be an instant, ISO 8601 or epoch milliseconds" }
  return {
    ...(reason !== undefined && { reason }),
    ...(topic !== undefined && { topic }),
    ...(fromMs !== undefined && { fromMs }),
    ...(toMs !== undefined && { toMs }),
  }
}

/** Epoch milliseconds; NaN where it is no instant. */
export function instantOf(text: string): number {
  return /^\d{1,16}$/.test(text) ? Number(text) : Date.parse(text)
}

function texts(parameters: ParameterValues): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => typeof value === 'string')) as Record<
    string,
    string
  >
}

function answered<T extends object>(answer: T | Refused | undefined): Reply {
  if (answer === undefined) return error(503, 'this process shows no data; it is mounted without access to it')
  if (!isRefused(answer)) return json(200, answer)
  const { refused, reason, address } = answer
  return address === undefined ? error(refused, reason) : json(refused, { error: reason, address })
}

type ShownStore = Answer<'Stores'>['stores'][number]
type ShownCount = 'rows' | 'bytes' | 'reads' | 'writes' | 'restoredRecords'

function storesOf({ view }: RouteServices): ShownStore[] {
  const topology = view.topology()
  const counters = view.counters()
  const { restore } = view.state()
  const changelogs = new Map((view.offsets()?.changelogs ?? []).map(({ store, topic }) => [store, topic]))
  return [...(topology?.stores.values() ?? [])].map(({ name, kind, changelog, keySerde, valueSerde }) => ({
    store: name,
    kind,
    subtopologies: (topology?.subtopologies ?? []).filter(({ stores }) => stores.includes(name)).map(({ id }) => id),
    global: topology?.globalStores.has(name) ?? false,
    changelog,
    changelogTopic: changelogs.get(name) ?? null,
    keySerde: keySerde.name,
    valueSerde: valueSerde.name,
    ...countsOf(counters, name),
    restore: restore
      .filter(({ store }) => store === name)
      .map(({ partition, restoredRecords, remainingRecords }) => ({ partition, restoredRecords, remainingRecords })),
  }))
}

const shownAs: Readonly<Record<(typeof storeSlots)[number], ShownCount>> = {
  entries: 'rows',
  bytes: 'bytes',
  gets: 'reads',
  puts: 'writes',
  restored: 'restoredRecords',
}

function countsOf(counters: CountersView | null, store: string): Pick<ShownStore, ShownCount> {
  const place = counters?.layout.stores.indexOf(store) ?? -1
  const counts = storeSlots.map((slot, i) => {
    const each = (counters?.lanes ?? []).map((block) =>
      place < 0 || counters === null ? 0 : (block[storeSlot(counters.layout, place, i)] as number),
    )
    return [shownAs[slot], each.reduce((all, count) => all + count, 0)] as const
  })
  return Object.fromEntries(counts) as Record<ShownCount, number>
}
