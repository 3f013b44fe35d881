/** The table of endpoints: routing, methods, gates, `/info`, `/openapi.json` and `docs/http.md` all come from it. */
import { stringify } from 'yaml'
import type { CommandResult } from '../engine/view.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { describeText, describeTopology } from '../topology/describe.ts'
import { type HaCommand, judgeHaCommand } from './ha-seam.ts'
import { renderInfo } from './info.ts'
import { preferredType } from './negotiate.ts'
import type { Parameter } from './parameters.ts'
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
import { contentTypes, error, json, notInitialized, type Reply, text } from './reply.ts'
import type { Route, RouteRequest, RouteServices } from './route.ts'

const varies = { Vary: 'Accept' }

const pod: Parameter = {
  name: 'pod',
  type: 'name',
  pattern: '[A-Za-z0-9._-]{1,253}',
  required: true,
  doc: 'name the pod the command is for',
}
const force: Parameter = {
  name: 'force',
  type: 'boolean',
  default: false,
  doc: 'overrides the readiness gate, nothing else',
}

const base = {
  method: 'GET',
  gate: 'always',
  needs: 'nothing',
  sensitive: false,
  parameters: [],
  success: 200,
  failures: [],
  formats: 'json',
} as const

function negotiated(request: RouteRequest, asJson: () => unknown, asText: () => string): Reply {
  const type = preferredType(request.accept, ['text/plain', 'application/json'])
  const reply = type === 'application/json' ? json(200, asJson()) : text(asText())
  return { ...reply, headers: varies }
}

/** The routes with `needs` are reached only with a topology. */
function topologyOf(services: RouteServices): CompiledTopology {
  return services.view.topology() as CompiledTopology
}

function commandReply(result: CommandResult, status: 'pausing' | 'resumed'): Reply {
  return result.ok ? json(200, { status, state: result.state }) : error(400, result.reason)
}

async function haReply(services: RouteServices, command: HaCommand): Promise<Reply> {
  const status = services.ha?.status() ?? null
  if (services.ha === null || status === null) return notInitialized(services.view)
  const verdict = judgeHaCommand(status, command)
  if (!verdict.ok) return error(verdict.status, verdict.reason)
  const commandOffset = await services.ha.publish(command)
  return json(202, { ...command, commandOffset })
}

const probes: readonly Route[] = [
  {
    ...base,
    path: '/health/live',
    failures: [503],
    schema: 'HealthReport',
    summary: 'Liveness probe',
    doc: 'Whether the process can go on. DOWN only where a restart can help: the engine FAILED for such a cause, its thread has been silent for 30 seconds, or an indicator of the application says so. UP while starting, restoring and shutting down.',
    handle: ({ health }) => probeReply(health.report('live')),
  },
  {
    ...base,
    path: '/health/ready',
    failures: [503],
    schema: 'HealthReport',
    summary: 'Readiness probe',
    doc: 'Whether the process does its work: every indicator is UP. DOWN while starting, restoring, restarting and shutting down; paused by an operator it stays UP.',
    handle: ({ health }) => probeReply(health.report('ready')),
  },
]

function probeReply(report: { readonly status: string }): Reply {
  return json(report.status === 'UP' ? 200 : 503, report)
}

const about: readonly Route[] = [
  {
    ...base,
    path: '/metrics',
    gate: 'metrics',
    sensitive: false,
    failures: [503],
    schema: null,
    formats: 'metrics',
    summary: 'Metrics in the Prometheus text format',
    doc: 'Every metric of `docs/metrics.md`, in text exposition format 0.0.4. Made at most once a second. 503 where `runtime.metrics.enabled` is false.',
    handle: async ({ metrics }) =>
      metrics === null
        ? error(503, 'metrics are not enabled; set runtime.metrics.enabled to true')
        : text(await metrics.scrape(), contentTypes.metrics),
  },
  {
    ...base,
    path: '/info',
    sensitive: true,
    schema: 'Info',
    summary: 'Application, platform, state and registered endpoints',
    doc: 'Always answered once the server is up. `lanes` is the count in force. The sections `watermark`, `offsets`, `consumer` and `topology` appear once the engine has them.',
    handle: (services) => json(200, renderInfo(services)),
  },
  {
    ...base,
    path: '/license',
    sensitive: true,
    schema: 'License',
    summary: 'License state',
    doc: 'State of the license; `NO_KEY` where no key is configured.',
    handle: ({ license }) => json(200, license.state()),
  },
  {
    ...base,
    path: '/config',
    gate: 'config',
    sensitive: true,
    schema: 'Configuration',
    formats: 'yaml or json',
    summary: 'Merged configuration, secrets masked',
    doc: 'The configuration in force as a nested map; every secret is `******`. YAML unless JSON is asked for.',
    handle: ({ configView }, { accept }) => {
      const offered = ['text/yaml', 'application/yaml', 'application/x-yaml', 'text/html', 'application/json'] as const
      const asJson = preferredType(accept, offered) === 'application/json'
      const config = configView()
      const reply = asJson ? json(200, config) : text(stringify(config), contentTypes.yaml)
      return { ...reply, headers: varies }
    },
  },
]

const introspection: readonly Route[] = [
  {
    ...base,
    path: '/state',
    needs: 'engine',
    failures: [503],
    schema: 'State',
    summary: 'Lifecycle state and its history',
    doc: 'The current state, since when, and the last transitions, newest first. `failure` tells why the engine is FAILED; `restore` what is left while state is restored.',
    handle: ({ view, mask }) => json(200, renderState(view.state(), mask)),
  },
  {
    ...base,
    path: '/topology',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'Topology',
    formats: 'text or json',
    summary: 'Sub-topologies, stores, boundaries, scheduled sources',
    doc: 'The structure of the application. Of each boundary between sub-topologies it says whether records cross it in the process or through a broker topic.',
    handle: (services, request) => {
      const view = viewTopology(topologyOf(services), services.view.split)
      return negotiated(
        request,
        () => view,
        () => topologyText(view),
      )
    },
  },
  {
    ...base,
    path: '/topology/ks',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'TopologyDescription',
    formats: 'text or json',
    summary: 'Topology in the format of Kafka Streams',
    doc: 'The description that viewers of Kafka Streams topologies read. A boundary inside the process appears as a repartition topic would.',
    handle: (services, request) => {
      const topology = topologyOf(services)
      return negotiated(
        request,
        () => describeTopology(topology),
        () => describeText(topology),
      )
    },
  },
  {
    ...base,
    path: '/topology/compiled',
    needs: 'started',
    sensitive: true,
    failures: [503],
    schema: 'CompiledTopology',
    formats: 'text or json',
    summary: 'Compiled topology',
    doc: 'The internal representation: graph below each source, boundaries, timer-aware processors. Not a stable contract. 503 until the application has started.',
    handle: (services, request) => {
      const topology = topologyOf(services)
      const { split } = services.view
      return negotiated(
        request,
        () => viewCompiled(topology, split),
        () => compiledText(topology, split),
      )
    },
  },
]

const progress: readonly Route[] = [
  {
    ...base,
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
    ...base,
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
    ...base,
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

const commands: readonly Route[] = [
  {
    ...base,
    method: 'POST',
    path: '/pause',
    needs: 'engine',
    sensitive: true,
    failures: [400, 403, 503],
    schema: 'PauseResult',
    summary: 'Pause processing',
    doc: 'Drains what is in flight, commits, then pauses. Answers at once with state `DRAINING`; `/state` shows `PAUSED` when drained. 400 in a state that cannot be paused.',
    handle: ({ commands: engine }) => commandReply(engine.pause(), 'pausing'),
  },
  {
    ...base,
    method: 'POST',
    path: '/unpause',
    needs: 'engine',
    sensitive: true,
    failures: [400, 403, 503],
    schema: 'PauseResult',
    summary: 'Resume processing',
    doc: 'From DRAINING or PAUSED back to RUNNING. 400 in any other state.',
    handle: ({ commands: engine }) => commandReply(engine.unpause(), 'resumed'),
  },
]

const highAvailability: readonly Route[] = [
  {
    ...base,
    path: '/ha/status',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'HaStatus',
    summary: 'Roles, states and replication lag of all pods',
    doc: 'This pod’s view of the hot-standby group. 404 where `ha.mode` is `off`.',
    handle: ({ ha, view }) => {
      const status = ha?.status() ?? null
      return status === null ? notInitialized(view) : json(200, status)
    },
  },
  {
    ...base,
    method: 'POST',
    path: '/ha/switch',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    parameters: [force],
    success: 202,
    failures: [400, 403, 409, 503],
    schema: 'HaAcknowledgement',
    summary: 'Hand the active role to a standby',
    doc: 'The active drains and a ready standby takes over. 409 where none is READY_STANDBY (`force=true` overrides) or the active restarts in place (nothing overrides).',
    handle: (services, { parameters }) =>
      haReply(services, { command: 'SWITCH', target: null, force: parameters.force === true }),
  },
  {
    ...base,
    method: 'POST',
    path: '/ha/promote',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    parameters: [pod, force],
    success: 202,
    failures: [400, 403, 409, 503],
    schema: 'HaAcknowledgement',
    summary: 'Promote the named standby',
    doc: '409 where the named pod is not READY_STANDBY (`force=true` overrides), or it or the active restarts in place (nothing overrides). A forced promotion still restores state fully before it processes.',
    handle: (services, { parameters }) =>
      haReply(services, { command: 'PROMOTE', target: String(parameters.pod), force: parameters.force === true }),
  },
  {
    ...base,
    method: 'POST',
    path: '/ha/demote',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    parameters: [pod, force],
    success: 202,
    failures: [400, 403, 409, 503],
    schema: 'HaAcknowledgement',
    summary: 'Demote the named active',
    doc: '409 where no pod is READY_STANDBY to take over (`force=true` overrides), where the named pod is not ACTIVE, or where it restarts in place (nothing overrides).',
    handle: (services, { parameters }) =>
      haReply(services, { command: 'DEMOTE', target: String(parameters.pod), force: parameters.force === true }),
  },
]

const debug: readonly Route[] = [
  {
    ...base,
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
    ...base,
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

const description: readonly Route[] = [
  {
    ...base,
    path: '/openapi.json',
    schema: 'OpenApi',
    summary: 'This interface as OpenAPI 3.1',
    doc: 'Describes the endpoints registered in this instance.',
    handle: ({ openApi }) => json(200, openApi()),
  },
]

export const routes: readonly Route[] = [
  ...probes,
  ...about,
  ...introspection,
  ...progress,
  ...commands,
  ...highAvailability,
  ...debug,
  ...description,
]
