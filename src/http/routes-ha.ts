/** Hot standby: status and the three commands. Unknown paths where `ha.mode` is `off`. */
import { type HaCommand, judgeHaCommand } from './ha-seam.ts'
import { messageOf } from '../errors.ts'
import type { Parameter } from './parameters.ts'
import { error, json, notInitialized, type Reply } from './reply.ts'
import { type Route, type RouteServices, routeDefaults } from './route.ts'

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

async function haReply(services: RouteServices, command: HaCommand): Promise<Reply> {
  const status = services.ha?.status() ?? null
  if (services.ha === null || status === null) return notInitialized(services.view)
  const verdict = judgeHaCommand(status, command)
  if (!verdict.ok) return error(verdict.status, verdict.reason)
  try {
    const commandOffset = await services.ha.publish(command)
    return json(202, { ...command, commandOffset })
  } catch (thrown) {
    return error(503, messageOf(thrown))
  }
}

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
    doc: 'This pod’s view of the hot-standby group. 404 where `ha.mode` is `off`.',
    handle: ({ ha, view }) => {
      const status = ha?.status() ?? null
      return status === null ? notInitialized(view) : json(200, status)
    },
  },
  {
    ...routeDefaults,
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
    ...routeDefaults,
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
    ...routeDefaults,
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
