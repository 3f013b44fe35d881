/** The STATUS record: sent every heartbeat interval, and at once when something changes that others act on. */
import type { Out } from './events.ts'
import type { Pod } from './pod.ts'
import { deletion } from './pod.ts'
import { encode, type StatusRecord, statusKey } from './log/records.ts'
import { ownStatus, shownOf } from './shown/status.ts'

const mostRemembered = 1000

export function beat(pod: Pod, out: Out, now: number): void {
  const shown = shownOf(pod)
  const changed = shown !== pod.shown
  if (changed) {
    pod.shown = shown
    out.other({ type: 'changed' })
  }
  if (!changed && now - pod.statusAt < pod.settings.heartbeatIntervalMs) return
  pod.statusAt = now
  pod.heartbeat++
  pod.heartbeatsSent.set(pod.heartbeat, now)
  for (const oldest of pod.heartbeatsSent.keys()) {
    if (pod.heartbeatsSent.size > mostRemembered) pod.heartbeatsSent.delete(oldest)
  }
  out.append(encode(ownStatus(pod)))
}

/** An own STATUS came back through the log: the pod can be heard, and hears. */
export function heartbeatBack(pod: Pod, out: Out, status: StatusRecord, offset: number): void {
  pod.generation ??= offset
  const sentAt = pod.heartbeatsSent.get(status.heartbeat)
  if (sentAt === undefined) return
  pod.fresh.acknowledged(sentAt)
  if (pod.refused) out.log('info', 'the own heartbeats come back through the coordinator topic again')
  pod.refused = undefined
  for (const heartbeat of pod.heartbeatsSent.keys()) {
    if (heartbeat <= status.heartbeat) pod.heartbeatsSent.delete(heartbeat)
  }
}

/** The pod's STATUS is deleted: peers need not wait for its silence. */
export function sayGoodbye(pod: Pod, out: Out, now: number): void {
  // A claim under way may still come through; the token would lie with a pod that is gone.
  if (!pod.stopping || pod.ended || pod.run || pod.claim) return
  if (pod.holdsToken() && !pod.view.release && !pod.inhibited) return
  const gone = !pod.view.peers.has(pod.podId)
  if (gone && pod.goodbyeAt > Number.NEGATIVE_INFINITY) {
    pod.ended = true
    out.other({ type: 'ended' })
    return
  }
  if (now - pod.goodbyeAt < pod.settings.heartbeatIntervalMs) return
  pod.goodbyeAt = now
  // An inhibited pod's last word stays: it is what keeps the others from walking into the same record.
  if (pod.inhibited) {
    pod.ended = true
    out.other({ type: 'ended' })
  } else out.append(deletion(statusKey(pod.podId)))
}
