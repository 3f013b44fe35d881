/** Views of the running engine, its two commands, and the snapshots for the day it stalls. */
import type { CommandResult, EngineView } from '../../view/view.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { HaView } from '../ha-seam.ts'
import { describeText, describeTopology } from '../../topology/describe.ts'
import { madeOnce } from './documents.ts'
import { preferredType } from './negotiate.ts'
import {
  renderBarriers,
  renderConsumer,
  renderOffsets,
  renderState,
  renderThreads,
  renderWatermarks,
  type ThreadFilter,
} from './render-state.ts'
import { compiledText, topologyText, viewCompiled, viewTopology } from './render-topology.ts'
import { error, json, jsonDocument, notInitialized, type Reply, text } from './reply.ts'
import { type Route, type RouteRequest, type RouteServices, routeDefaults } from './route.ts'
import type { Answer } from './schemas.ts'

/** Answers from documents of the topology, each made once. */
function negotiated(
  document: (topology: CompiledTopology, variant: TopologyVariant) => Buffer,
  services: RouteServices,
  request: RouteRequest,
): Reply {
  const type = preferredType(request.accept, ['text/plain', 'application/json'])
  const body = document(topologyOf(services), `${services.view.split} ${type}`)
  const reply = type === 'application/json' ? jsonDocument(body) : text(body)
  return { ...reply, headers: { Vary: 'Accept' } }
}

type TopologyVariant = `${EngineView['split']} ${'text/plain' | 'application/json'}`

function topologyDocument<T = unknown>(
  asJson: (topology: CompiledTopology, split: EngineView['split']) => T,
  asText: (topology: CompiledTopology, split: EngineView['split']) => string,
): (topology: CompiledTopology, variant: TopologyVariant) => Buffer {
  return madeOnce((topology, variant) => {
    const [split, type] = variant.split(' ') as [EngineView['split'], string]
    return type === 'application/json' ? JSON.stringify(asJson(topology, split)) : asText(topology, split)
  })
}

const topologyDocuments = topologyDocument<Answer<'Topology'>>(viewTopology, (topology, split) =>
  topologyText(viewTopology(topology, split)),
)
const descriptionDocuments = topologyDocument<Answer<'TopologyDescription'>>(describeTopology, describeText)
const compiledDocuments = topologyDocument(viewCompiled, compiledText)

/** The routes with `needs` are reached only with a topology. */
function topologyOf(services: RouteServices): CompiledTopology {
  return services.view.topology() as CompiledTopology
}

function commandReply(result: CommandResult, status: 'pausing' | 'resumed', ha: HaView | null): Reply {
  return result.ok
    ? json<Answer<'PauseResult'>>(200, { status, state: result.state })
    : error(400, result.reason + whoElse(ha))
}

/** A standby has nothing to pause: the pod that has is another one. */
function whoElse(ha: HaView | null): string {
  const status = ha?.status() ?? null
  if (status === null || status.selfRole === 'ACTIVE') return ''
  const active = status.peers.find(({ role }) => role === 'ACTIVE')
  return active === undefined ? '; no pod is active now' : `; pod ${active.podId} is active: ask that one`
}

export const introspectionRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/state',
    needs: 'engine',
    failures: [503],
    schema: 'State',
    summary: 'Lifecycle state and its history',
    doc: 'The current state, since when, and the last transitions, newest first. `failure` tells why the engine is FAILED; `restore` what is left while state is restored.',
    handle: ({ view, mask }) => json(200, renderState(view.state(), mask)),
  },
  {
    ...routeDefaults,
    path: '/topology',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'Topology',
    formats: 'text or json',
    summary: 'Sub-topologies, stores, boundaries, scheduled sources',
    doc: 'The structure of the application. Of each boundary between sub-topologies it says whether records cross it in the process or through a broker topic.',
    handle: (services, request) => negotiated(topologyDocuments, services, request),
  },
  {
    ...routeDefaults,
    path: '/topology/ks',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'TopologyDescription',
    formats: 'text or json',
    summary: 'Topology in the format of Kafka Streams',
    doc: 'The description that viewers of Kafka Streams topologies read. A boundary inside the process appears as a repartition topic would.',
    handle: (services, request) => negotiated(descriptionDocuments, services, request),
  },
  {
    ...routeDefaults,
    path: '/topology/compiled',
    needs: 'started',
    sensitive: true,
    failures: [503],
    schema: 'CompiledTopology',
    formats: 'text or json',
    summary: 'Compiled topology',
    doc: 'The internal representation: graph below each source, boundaries, timer-aware processors. Not a stable contract. 503 until the application has started.',
    handle: (services, request) => negotiated(compiledDocuments, services, request),
  },
]

export const progressRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/watermarks',
    needs: 'engine',
    failures: [503],
    schema: 'Watermarks',
    summary: 'Event-time watermarks',
    doc: 'The global watermark, each partition’s own, idleness, alignment groups and the hold that stops dispatch, if one does. 503 while no partition is registered.',
    handle: ({ view }) => {
      const snapshot = view.watermarks()
      if (snapshot === null) return notInitialized(view)
      if (Object.keys(snapshot.partitions).length === 0) {
        return error(503, 'no partitions are registered yet; retry once the consumer has its assignment')
      }
      return json(200, renderWatermarks(snapshot))
    },
  },
  {
    ...routeDefaults,
    path: '/offsets',
    needs: 'engine',
    failures: [503],
    schema: 'Offsets',
    summary: 'Committed offsets and lag',
    doc: 'Per source partition the committed offset, the end of the log and the lag; per changelog partition the committed offset. From cached values: the broker is not asked.',
    handle: ({ view }) => {
      const snapshot = view.offsets()
      return snapshot === null ? notInitialized(view) : json(200, renderOffsets(snapshot))
    },
  },
  {
    ...routeDefaults,
    path: '/consumer',
    needs: 'engine',
    failures: [503],
    schema: 'Consumer',
    summary: 'Group membership and partition buffers',
    doc: '`bufferCapacity` is the threshold at which a partition is paused, not a hard limit: `buffered` may exceed it by up to `consumer.max.poll.records` − 1. `paused` is true whenever the partition is not fetched: buffer full, application paused, or stores restoring. 503 while no partition is assigned.',
    handle: ({ view }) => {
      const snapshot = view.consumer()
      if (snapshot === null) return notInitialized(view)
      if (Object.keys(snapshot.assignment).length === 0) {
        return error(503, 'no partitions are assigned to the consumer yet; retry after the group has rebalanced')
      }
      return json(200, renderConsumer(snapshot))
    },
  },
]

export const commandRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    method: 'POST',
    path: '/pause',
    needs: 'engine',
    sensitive: true,
    failures: [400, 403, 503],
    schema: 'PauseResult',
    summary: 'Pause processing',
    doc: 'Drains what is in flight, commits, then pauses. The wall clock calls no schedule meanwhile. Answers at once with state `DRAINING`; `/state` shows `PAUSED` when drained. 400 in a state that cannot be paused.',
    handle: ({ commands: engine, ha }, { from }) =>
      commandReply(engine.pause(`an operator over HTTP${from === undefined ? '' : ` from ${from}`}`), 'pausing', ha),
  },
  {
    ...routeDefaults,
    method: 'POST',
    path: '/unpause',
    needs: 'engine',
    sensitive: true,
    failures: [400, 403, 503],
    schema: 'PauseResult',
    summary: 'Resume processing',
    doc: 'From DRAINING or PAUSED back to RUNNING. 400 in any other state.',
    handle: ({ commands: engine, ha }) => commandReply(engine.unpause(), 'resumed', ha),
  },
]

export const debugRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/debug/threads',
    gate: 'debug',
    needs: 'engine',
    sensitive: true,
    parameters: [
      { name: 'depth', type: 'integer', min: 1, max: 1000, default: 40, doc: 'most stack frames per thread' },
      {
        name: 'filter',
        type: 'enum',
        values: ['all', 'stuck', 'known'],
        default: 'all',
        doc: '`stuck`: only threads that are not RUNNABLE; `known`: only threads of the engine',
      },
    ],
    failures: [400, 503],
    schema: 'Threads',
    summary: 'Threads, their states and stacks',
    doc: 'Engine threads with the real stack of the code they are in, and the operating system’s threads of the process. Frames are function names with file and line, nothing of the data.',
    handle: async ({ view }, { parameters, signal }) =>
      json(
        200,
        renderThreads(
          await view.threads({ depth: Number(parameters.depth), signal }),
          parameters.filter as ThreadFilter,
        ),
      ),
  },
  {
    ...routeDefaults,
    path: '/debug/barriers',
    gate: 'debug',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'Barriers',
    summary: 'Commit pipeline',
    doc: 'Phase of the commit under way, the lanes it waits for and what each is at, the last commits and the restarts used.',
    handle: ({ view, clock }) => {
      const snapshot = view.barriers()
      return snapshot === null ? notInitialized(view) : json(200, renderBarriers(snapshot, clock.now()))
    },
  },
]
