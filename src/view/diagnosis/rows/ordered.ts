/** What the process was told to do, or is not allowed to. */
import type { Facts, HaFacts } from '../facts.ts'
import { everythingBehind, type StandstillRow } from '../row.ts'
import { isInMemory, setting, time } from '../wording/advice.ts'
import { promotingNext } from '../wording/promoting.ts'
import { clockTime, lasting, listed } from '../words.ts'

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const paused: StandstillRow = {
  code: 'PAUSED',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'Paused by an operator',
  when: 'Somebody asked for it with POST /pause: while it finishes what is under way, and from then on.',
  explains: everythingBehind,
  next: 'Find out first why it was paused: ask the person or the user of the address that the sentence names (127.0.0.1 is this host or container itself, also through a port-forward). Then `millrace resume` with the same `--url`, or POST /unpause, lets it go on. A restart ends the pause too, but for hot standby. If nobody can be reached, leave it paused: it may have been paused to stop a loss. Records wait in their topics meanwhile, for as long as these keep them (`retention.ms`).',
  guide: 'With `ha.mode: hot-standby` the pause stays: the pod that takes over is paused too.',
  find: ({ state, pausedBy, stateSinceMs, ha }, now) => {
    if (state !== 'PAUSED' && state !== 'DRAINING') return []
    const sinceMs = pausedBy?.sinceMs ?? stateSinceMs
    return [
      {
        sentence: `${state === 'PAUSED' ? 'This process is paused and reads no records' : 'This process is about to pause: it still finishes what it has begun'}. ${upper(pausedBy?.who ?? 'an operator')} asked for it ${lasting(now - sinceMs)} ago (${clockTime(sinceMs)}).`,
        sinceMs,
        place: {},
        evidence: [{ at: '/state', field: 'current', value: state }],
        next: pausedNext(pausedBy === null, ha !== null),
      },
    ]
  },
}

function pausedNext(isByUnknown: boolean, isPod: boolean): string {
  const { next } = paused
  const asked = isByUnknown
    ? next.replace(/ask the person or .*?\)\. Then/, 'who did it is not known here, so ask your team. Then')
    : next
  return isPod ? asked.replace(' A restart ends the pause too, but for hot standby.', '') : asked
}

/** While pods take over from one another there is none for a moment. */
const noneForMs = 60_000

/** How long no pod has been active, as far as a standby hears; 0 where one is. */
function noneMsOf({ ha }: Facts, now: number): number {
  return now - (ha?.noneSinceMs ?? now)
}

const isTakingOver = (ha: Facts['ha']): boolean => ha?.state === 'PROMOTING'

function standbySentence({ ha, stateSinceMs, diskFull }: Facts, noneMs: number, now: number): string {
  const notReady = ha?.notReady ?? null
  const ready = isTakingOver(ha)
    ? ' It takes over at this moment: it restores what is missing, and is active then.'
    : notReady === null
      ? ''
      : diskFull !== null
        ? ' This process cannot take over before its disk has room.'
        : ` This process could not take over now: ${notReady.replace(/\.?$/, '.')}`
  const name = ha === null ? '' : ` (pod ${ha.podId})`
  const active = whoIsActive(ha, noneMs)
  return `This process${name} has been a standby for ${lasting(now - stateSinceMs)} and processes nothing. ${active}.${ready}`
}

const standby: StandstillRow = {
  code: 'STANDBY',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'A standby',
  when: 'This process (a pod of an application with `ha.mode: hot-standby`) waits to take over; another one is to process.',
  explains: everythingBehind,
  next: 'A standby is no fault. Ask the pod that is active, with `millrace why --url` and its address.',
  find: (facts, now) => {
    const { state, ha, stateSinceMs, settings } = facts
    const noneMs = noneMsOf(facts, now)
    if (state !== 'STANDBY' || noneMs >= noneForMs) return []
    const active = ha?.active ?? null
    return [
      {
        sentence: standbySentence(facts, noneMs, now),
        next:
          active === null ? noneActiveNext(facts, noneMs, now) : standbyNext(active, ha?.notReady !== null, settings),
        sinceMs: stateSinceMs,
        place: { ...(active !== null && { pod: active.podId }) },
        evidence: [{ at: '/ha/status', field: 'selfState', value: ha?.state ?? null }],
      },
    ]
  },
}

const nobodyActive: StandstillRow = {
  code: 'NOBODY_ACTIVE',
  severity: 'STANDING',
  title: 'No pod is active',
  when: 'This process is a standby (`ha.mode: hot-standby`) and has heard of no active pod for a minute.',
  explains: everythingBehind,
  next: '`millrace ha status` shows all pods and their states, and of the pod that is asked why it does not take over; `millrace ha promote <pod> --wait` makes one of them active.',
  find: (facts, now) => {
    const noneMs = noneMsOf(facts, now)
    if (facts.state !== 'STANDBY' || noneMs < noneForMs) return []
    return [
      {
        sentence: standbySentence(facts, noneMs, now),
        next: noneActiveNext(facts, noneMs, now),
        sinceMs: now - noneMs,
        place: {},
        evidence: [{ at: '/ha/status', field: 'peers[].role', value: 'STANDBY' }],
      },
    ]
  },
}

function whoIsActive(ha: HaFacts | null, noneMs: number): string {
  const active = ha?.active ?? null
  if (active !== null)
    return `The pod ${active.podId} is active: it said ${active.state} ${lasting(active.heardMs)} ago`
  if (ha?.promoting !== undefined) {
    const { podId, diskFull, heardMs } = ha.promoting
    const waits = diskFull ? ', and waits for room on its disk' : ''
    return `The pod ${podId} is about to become active${waits}: it said PROMOTING ${lasting(heardMs)} ago. Until it is, nothing is processed; no pod has been active for the last ${lasting(noneMs)}`
  }
  const since = noneMs < 1000 ? '' : ` It has seen none for the last ${lasting(noneMs)}.`
  return `It knows of no active pod, so probably nothing is processed.${since}`.replace(/\.$/, '')
}

/** An active pod in these states is about to be it no more. */
const ending: ReadonlySet<string> = new Set(['STOPPING', 'DEMOTING', 'FAILED', 'ISOLATED'])

function standbyNext({ podId: active, state }: Active, isBehind: boolean, settings: Facts['settings']): string {
  if (ending.has(state)) {
    const timeout = setting('ha.failover-timeout', time(settings?.failoverTimeoutMs))
    return `That pod is about to be active no more. A ready standby takes over by itself: at once where that pod hands over, else once it has been silent for ${timeout}. Ask again in a minute: where no pod is active then, this answer says what to do. \`millrace ha status\` shows all pods meanwhile.`
  }
  const ready = isBehind
    ? ' Leave that pod running meanwhile. `millrace ha status` shows how far this one is behind: where that does not change within a minute, look at its log, and at the processor, disk and network of its host.'
    : ''
  const first = isBehind
    ? 'That this standby is not ready is not why results have stopped, if they have: ask'
    : 'Nothing is wrong here. If results have stopped, ask'
  return `${first} the pod ${active} (\`millrace why --url\` with its address).${ready}`
}

type Active = NonNullable<HaFacts['active']>

const isLoopback = (address: string): boolean => /^(127\.|::1$|::ffff:127\.)/.test(address)

/** Who asked for the pause, as far as that is known: the pod that was asked tells from where. */
function pausedFailover({ pod, atMs, from }: NonNullable<HaFacts['failoverPaused']>, now: number): string {
  const when = atMs === null ? '' : ` ${lasting(now - atMs)} ago (${clockTime(atMs)})`
  const through =
    pod === null
      ? ''
      : `, by a command to the pod ${pod}${from === null ? '' : ` from the address ${from}${isLoopback(from) ? ' (its own host or container, also through a port-forward)' : ''}`}`
  return `Somebody has paused failover (not processing)${when}${through},`
}

/** Why nobody takes over, as far as that is known here, and how somebody does. */
function noneActiveNext({ ha, settings }: Facts, noneMs: number, now: number): string {
  const look =
    '`millrace ha status --url` with the address of this process shows all pods and their states, and why this one does not take over.'
  if (ha === null) return `${look} \`millrace ha promote <pod> --wait\` makes one of them active.`
  if (isTakingOver(ha))
    return 'Wait, and ask again in some seconds; `/state` shows how much is restored. Send no `millrace ha promote` meanwhile. Where nothing has changed after a minute, look at its log, and whether it reaches its broker: the last lines say what it waits for. It may be restarted then: another pod takes over, or this one anew, and nothing is lost.'
  if (ha.promoting !== undefined) return promotingNext(ha.promoting, ha, settings)
  const inState = (state: string): string[] => ha.others.filter((pod) => pod.state === state).map(({ podId }) => podId)
  const [failed, lost] = [inState('FAILED'), inState('LOST')]
  const timeout = setting('ha.failover-timeout', time(settings?.failoverTimeoutMs))
  const why = [
    ...(failed.length > 0
      ? [
          `Failed: ${listed(failed)}. \`millrace why --url\` with the address of such a pod says of what; correct that first, or the next pod fails of it, too.`,
        ]
      : []),
    ...(ha.failoverPaused !== null
      ? [
          `${pausedFailover(ha.failoverPaused, now)} so no pod takes over by itself: ask first who did, and why. \`millrace ha resume --wait\`, with the same \`--url\`, ends that. If nobody can be reached, go on with the next step: \`millrace ha promote\` works all the same, and leaves it paused.`,
        ]
      : [
          noneMs > (settings?.failoverTimeoutMs ?? 0) + noneForMs / 2
            ? `By itself a ready pod should have taken over once the active one was silent for ${timeout}, and none has: do not wait any longer.`
            : `Wait for that first: by itself a ready pod takes over once the active one has been silent for ${timeout}.`,
        ]),
    ...(lost.length > 0
      ? [
          `Of these nothing is heard: ${listed(lost)}. Ask each with \`millrace why --url\` and its address, and start again only what does not run: one that says that it is active works, and this process alone does not hear it.`,
        ]
      : []),
  ]
  const restores = ` It is refused while this standby is not ready${ha.notReady === null ? '' : ', as now'}: ask again until it is, or add \`--force\`. Then it restores its state before it processes, which takes time and loses nothing.`
  const safe =
    ' If the pod that was active still runs somewhere, Kafka refuses it from then on: nothing is lost, and nothing counts twice.'
  return `${look} ${why.join(' ')} Where nobody is active after that, let this process take over: \`millrace ha promote ${ha.podId} --wait\`, with the same \`--url\`.${restores}${safe}`
}

const losesNothing =
  'To end it by hand (`kill -9`) loses no record: what is not committed is read again at the next start, and calls to other systems that belong to it are made again. With exactly-once no result comes twice; with at-least-once some may. Stores in memory are then restored first.'
const losesTopics =
  'The topics of its embedded broker are in memory, and are lost with the process, however it ends: call the developers where those topics are still needed.'
const killing = `${losesNothing} (Topics of an embedded broker without a folder are lost with the process, however it ends.)`
const whoStopped =
  'If nobody meant it to stop, look for what stopped it (a deployment, the supervisor, a signal; in Kubernetes `kubectl get events`), and start it again once it has ended, unless its supervisor does.'

/** Beyond its time-out: a process also has to close what it has open. */
const overdueMs = 10_000

function stoppingNext({ settings, broker }: Facts, forMs: number): string {
  const isLost = isInMemory(broker.address)
  const isOverdue = settings?.shutdownTimeoutMs !== undefined && forMs > settings.shutdownTimeoutMs + overdueMs
  const timeout = setting('runtime.shutdown.timeout', time(settings?.shutdownTimeoutMs))
  return isOverdue
    ? `It should have ended within ${timeout} and has not. Save the answer of GET \`/debug/threads\` for the developers, and end it by hand. ${isLost ? losesTopics : losesNothing} ${whoStopped}`
    : `If that was intended, nothing is to be done: it ends by itself once that is committed, or at the latest after ${timeout}. ${isLost ? `${losesTopics} ` : ''}${whoStopped}`
}

const stopping: StandstillRow = {
  code: 'STOPPING',
  severity: 'NOT_MEANT_TO_RUN',
  withoutRestart: true,
  title: 'It stops',
  when: 'The process was told to end.',
  explains: everythingBehind,
  next: `If that was intended, nothing is to be done: it ends by itself, at the latest after \`runtime.shutdown.timeout\`. ${killing} ${whoStopped}`,
  find: (facts, now) => {
    const { state, stateSinceMs, failure } = facts
    return state !== 'STOPPING' && state !== 'STOPPED'
      ? []
      : [
          {
            sentence: `This process was told to end ${lasting(now - stateSinceMs)} ago. It takes in no more records${state === 'STOPPING' && failure === null ? ', and commits those that it has finished' : ''}.`,
            sinceMs: stateSinceMs,
            place: {},
            evidence: [{ at: '/state', field: 'current', value: state }],
            next:
              state === 'STOPPING'
                ? stoppingNext(facts, now - stateSinceMs)
                : `If that was intended, nothing is to be done: it has finished, and ends in a moment. ${whoStopped}`,
          },
        ]
  },
}

const license: StandstillRow = {
  code: 'LICENSE_REFUSED',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'The license is not accepted',
  when: 'The license is EXPIRED, REVOKED or INVALID.',
  explains: [],
  next: 'A restart alone does not help. EXPIRED: get a renewed license, or, where the license server could not be asked for too long, let this host reach it. REVOKED: whoever buys the licenses of this application has to ask the seller why. INVALID: check `license.key` or `license.key-file` (the whole key, on one line), `license.public-keys`, the clock of this host, and whether more machines use the license than it allows.',
  guide:
    '`/health/ready` (the readiness probe) is DOWN, so a load balancer or a supervisor may take the process out of service. Records are processed all the same.',
  find: ({ license: { status, counts, sinceMs, reason } }, now) =>
    counts
      ? []
      : [
          {
            sentence: `The license has been ${status} for ${lasting(now - sinceMs)}. Because of that /health/ready is DOWN, and a load balancer or a supervisor may take this process out of service.${reasonOf(reason)} Records are processed all the same: if results have stopped, there is another cause.`,
            sinceMs,
            place: {},
            evidence: [{ at: '/license', field: 'status', value: status }],
            next: `${licenseNext(status, reason)} ${seeLicense}`,
          },
        ],
}

function reasonOf(reason: string | undefined): string {
  const why = reason ? reason.replace(/^The license is \w+: /, '').replace(/\.?$/, '.') : ''
  return why === '' ? '' : ` The reason: ${why}`
}

const seeLicense = '`/license` shows the present one, and the log what each validation said.'
const setIt = 'set it as `license.key` or `license.key-file`, and start the process again'

function licenseNext(status: string, reason = ''): string {
  switch (status) {
    case 'EXPIRED':
      return /grace period is over/.test(reason)
        ? 'The license itself may be good, but it could not be validated for longer than `license.grace-period`: let this host reach the license server (`license.server-url`: its name, a firewall, a proxy). The process asks again by itself, after `license.heartbeat-interval` at the latest; no restart is needed.'
        : `A restart alone does not help: get a renewed license from whoever buys the licenses of this application, ${setIt}.`
    case 'REVOKED':
      return `The license server has taken this license back, and a restart does not help. Whoever buys the licenses of this application has to ask the seller why. With another one, ${setIt}.`
    default:
      return `${reason.trim() === '' ? 'Check, by what the log says of the validation' : 'Check, by the reason above'}: that \`license.key\` or the file of \`license.key-file\` holds the whole key on one line (\`millrace license inspect <key>\` tells what it says), that \`license.public-keys\` are those of its issuer, that the clock of this host is right, and that no more machines use the license than it allows. Start the process again only once you have corrected something.`
  }
}

export const orderedRows: readonly StandstillRow[] = [stopping, paused, standby, nobodyActive, license]
