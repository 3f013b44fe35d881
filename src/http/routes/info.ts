import { isoDuration } from '../../base/duration.ts'
import { renderOffsets } from './render-state.ts'
import type { RouteServices } from './route.ts'
import type { Answer } from './schemas.ts'
import { iso, isoOfClock } from '../time.ts'

/** `/info`. The optional sections appear once the engine has what they tell. */
export function renderInfo(services: RouteServices): Answer<'Info'> {
  const { view, mask, startedAtMs } = services
  const state = view.state()
  const watermarks = view.watermarks()
  const offsets = view.offsets()
  const consumer = view.consumer()
  const topology = view.topology()
  const broker = view.broker()
  return {
    app: { applicationId: view.applicationId, lanes: view.lanes },
    platform: {
      version: process.version,
      vendor: 'OpenJS Foundation',
      runtime: `Node.js / V8 ${process.versions.v8}`,
    },
    broker: {
      bootstrapServers: mask(broker.bootstrapServers),
      applicationId: view.applicationId,
      connected: broker.connected,
      since: isoOfClock(broker.sinceMs),
      fault: broker.fault === null ? null : mask(broker.fault),
    },
    uptime: { startTime: isoOfClock(startedAtMs), uptime: isoDuration(services.uptimeMs()) },
    state: { current: state.current, since: isoOfClock(state.sinceMs) },
    ...(watermarks === null
      ? {}
      : { watermark: { globalMs: watermarks.globalMs, globalIso: iso(watermarks.globalMs) } }),
    ...(offsets === null ? {} : { offsets: { totalLag: renderOffsets(offsets).totalLag } }),
    ...(consumer === null
      ? {}
      : { consumer: { groupId: consumer.groupId, assignedPartitions: Object.keys(consumer.assignment).length } }),
    ...(topology === null
      ? {}
      : {
          topology: {
            subtopologies: topology.subtopologies.length,
            sources: topology.sources.length,
            sinks: topology.nodes.filter((node) => node.type === 'sink').length,
            stores: topology.stores.size,
            scheduledSources: topology.sources.filter((source) => source.kind === 'scheduled').length,
            split: view.split,
          },
        }),
    endpoints: services.endpoints(),
  }
}
