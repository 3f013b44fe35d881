/** Hot standby: status, history and commands. Unknown paths where `ha.mode` is `off`. */
import { type HaCommand, judgeHaCommand } from '../ha-seam.ts'
import { messageOf } from '../../base/errors.ts'
import type { Parameter } from './parameters.ts'
import { error, json, notInitialized, type Reply } from './reply.ts'
import { type Route, type RouteRequest, type RouteServices, routeDefaults } from './route.ts'
import type { Answer } from './schemas.ts'

const pod: Parameter = {
  name: 'pod',
  type: 'name',
  pattern: '[A-Za-z0-9._-]{1,253}',
  required: true,
  doc: 'name the pod the command is for',
}
const value: Parameter = {
  name: 'value',
  type: 'name',
  pattern: '(default|[0-9]{1,6}|1000000)',
  required: true,
  shape: 'a whole number up to 1000000, or default',
  doc: 'the new priority; 0: never by itself; `default`: as the pod is configured',
}
const force: Parameter = {
  name: 'force',
  type: 'boolean',
  default: false,
  doc: 'overrides the readiness gate, nothing else',
}

async function haReply(services: RouteServices, { from }: RouteRequest, command: HaCommand): Promise<Reply> {
  const status = services.ha?.status() ?? null
  if (services.ha === null || status === null) return notInitialized(services.view)
  const verdict = judgeHaCommand(status, command)
  if (!verdict.ok) return error(verdict.status, verdict.reason)
  try {
    const commandOffset = await services.ha.publish(command, from)
    const { command: name, target, force } = command
    return json<Answer<'HaAcknowledgement'>>(202, { command: name, target, force, commandOffset })
  } catch (thrown) {
    return error(503, messageOf(thrown))
  }
}

/** What all commands to the group have in common: they are taken on, and what becomes of them is asked later. */
const haCommand = {
  ...routeDefaults,
  method: 'POST',
  gate: 'ha',
  needs: 'engine',
  sensitive: true,
  success: 202,
  schema: 'HaAcknowledgement',
} as const

export const highAvailabilityRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/ha/status',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'HaStatus',
    summary: 'Roles, states and replication lag of all pods',
    doc: 'This pod’s view of the hot-standby group. `commands` has the result of each of the last commands by its offset; `notReady` says why this pod could not take over. 404 where `ha.mode` is `off`.',
    handle: ({ ha, view }) => {
      const status = ha?.status() ?? null
      return status === null ? notInitialized(view) : json<Answer<'HaStatus'>>(200, status)
    },
  },
  {
    ...routeDefaults,
    path: '/ha/history',
    gate: 'ha',
    needs: 'engine',
    sensitive: true,
    failures: [503],
    schema: 'HaHistory',
    summary: 'Who became active, when and why',
    doc: 'The last takeovers (at least 16, where there were as many), and what operators said of failover and priorities; newest first. Read from the coordinator topic: the same on every pod, and through restarts.',
    handle: ({ ha, view }) => {
      const history = ha?.history() ?? null
      return history === null ? notInitialized(view) : json<Answer<'HaHistory'>>(200, history)
    },
  },
  {
    ...haCommand,
    path: '/ha/switch',
    parameters: [force],
    failures: [400, 403, 409, 503],
    summary: 'Hand the active role to a standby',
    doc: 'The active drains and a ready standby takes over. 409 where none is READY_STANDBY (`force=true` overrides), where nobody is ACTIVE, or where the active restarts in place (nothing overrides).',
    handle: (services, request) =>
      haReply(services, request, { command: 'SWITCH', target: null, force: request.parameters.force === true }),
  },
  {
    ...haCommand,
    path: '/ha/promote',
    parameters: [pod, force],
    failures: [400, 403, 409, 503],
    summary: 'Promote the named standby',
    doc: '409 where the named pod is not READY_STANDBY (`force=true` overrides), or it or the active restarts in place (nothing overrides). A forced promotion still restores state fully before it processes.',
    handle: (services, request) =>
      haReply(services, request, {
        command: 'PROMOTE',
        target: String(request.parameters.pod),
        force: request.parameters.force === true,
      }),
  },
  {
    ...haCommand,
    path: '/ha/demote',
    parameters: [pod, force],
    failures: [400, 403, 409, 503],
    summary: 'Demote the named active',
    doc: '409 where no pod is READY_STANDBY to take over (`force=true` overrides), where the named pod is not ACTIVE, or where it restarts in place (nothing overrides).',
    handle: (services, request) =>
      haReply(services, request, {
        command: 'DEMOTE',
        target: String(request.parameters.pod),
        force: request.parameters.force === true,
      }),
  },
  {
    ...haCommand,
    path: '/ha/pause',
    failures: [403, 503],
    summary: 'Pause failover, for maintenance',
    doc: 'From here on nobody takes over by itself, whatever happens to the active pod; it may take the role up again when it comes back. Commands and orderly hand-overs go on. Processing is not paused: that is `/pause`.',
    handle: (services, request) => haReply(services, request, { command: 'PAUSE', target: null, force: false }),
  },
  {
    ...haCommand,
    path: '/ha/resume',
    failures: [403, 503],
    summary: 'Resume failover',
    doc: 'Ends `/ha/pause`: a standby takes over by itself again where the active pod is gone.',
    handle: (services, request) => haReply(services, request, { command: 'RESUME', target: null, force: false }),
  },
  {
    ...haCommand,
    path: '/ha/priority',
    parameters: [pod, value],
    failures: [400, 403, 409, 503],
    summary: 'Set the failover priority of a pod',
    doc: 'In place of `ha.failover-priority`, without a restart and beyond the next one, until it is set again; 0 means that the pod never takes over by itself. 409 where no such pod is known.',
    handle: (services, request) => {
      const { pod: target, value: given } = request.parameters
      const priority = given === 'default' ? null : Number(given)
      return haReply(services, request, { command: 'PRIORITY', target: String(target), force: false, value: priority })
    },
  },
]
