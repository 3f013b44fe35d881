/**
 * Records of the coordinator topic. Every claim, command and result has a key of its own, so that compaction, which keeps
 * the last record of a key, can never take away the first claim of an epoch, the one that counts.
 *
 * | Key | Record |
 * |---|---|
 * | `s/<pod>` | STATUS, the heartbeat; deleted: the pod has said goodbye |
 * | `t/<epoch>/<pod>/<nonce>` | CLAIM of the token for this epoch; the one at the lowest offset wins |
 * | `v/<pod>` | VERIFY: read it back, and everything before it was read too |
 * | `c/<id>` | COMMAND of an operator; its offset names it |
 * | `l/<epoch>` | RELEASE of the token by its holder |
 * | `r/<command offset>` | RESULT of a command |
 */
import type { RecordPlace } from '../../engine/ha-contract.ts'
import type { HaRole, HaState } from '../contract.ts'
import { type Fields, flagOf, listOf, oneOf, textOf, textsOf, wholeOf } from './fields.ts'
import { isPlainObject, parseObject } from './json.ts'

export const recordVersion = 1
export const largestRecordBytes = 64 * 1024
const longestKey = 1024
const longestName = 253
const longestReason = 1000
export const mostFaults = 8
export const mostRefused = 16

export const roles = ['ACTIVE', 'STANDBY'] as const satisfies readonly HaRole[]
export const states = [
  'JOINING',
  'BOOTSTRAPPING',
  'CATCHING_UP',
  'READY_STANDBY',
  'PROMOTING',
  'ACTIVE',
  'DEMOTING',
  'ISOLATED',
  'FAILED',
  'STOPPING',
] as const satisfies readonly HaState[]
export const causes = ['FAILOVER', 'SWITCH', 'PROMOTE', 'BOOT'] as const
export const commands = ['SWITCH', 'PROMOTE', 'DEMOTE', 'PAUSE', 'RESUME', 'PRIORITY'] as const
/** Commands that stand until another one takes their place: nobody carries them out, every pod follows the newest. */
export const standingCommands: ReadonlySet<string> = new Set(['PAUSE', 'RESUME', 'PRIORITY'])
export const outcomes = ['DONE', 'REJECTED', 'EXPIRED'] as const

export type Cause = (typeof causes)[number]
export type Outcome = (typeof outcomes)[number]

/** A record that made an engine restart, and how often. */
export interface Fault extends RecordPlace {
  readonly count: number
}

export interface StatusRecord {
  readonly kind: 'status'
  readonly podId: string
  /** False where the record is of a version that this build does not know: the pod is alive, and no more is known. */
  readonly understood: boolean
  /** Names one life of the pod. */
  readonly incarnation: string
  /** Offset of this life's first record; null in that record itself. */
  readonly generation: number | null
  readonly role: HaRole | 'UNKNOWN'
  readonly state: HaState | 'UNKNOWN'
  readonly restarting: boolean
  readonly paused: boolean
  /** Epoch under which this pod's engine runs or is being promoted; 0: none. */
  readonly tokenEpoch: number
  readonly tokenEpochSeen: number
  readonly commitId: string | null
  readonly lagRecords: number
  readonly lagMs: number
  /** Its stores wait for room on the disk. */
  readonly diskFull: boolean
  readonly failoverPriority: number
  readonly topologyHash: string
  /** What of the topology has to do with state: see `topology-shape.ts`. Empty from builds that do not tell it. */
  readonly topologyShape: ReadonlyMap<string, string>
  readonly configHashes: ReadonlyMap<string, string>
  readonly build: string
  readonly faults: readonly Fault[]
  /** FAILED for a record that failed on another pod too: nobody takes over by itself. */
  readonly handoffInhibited: boolean
  /** Offset of the newest command that it has read; null from builds that do not tell it. */
  readonly commandRead: number | null
  /** Offsets of the last commands whose signature is missing or wrong to it. */
  readonly refusedCommands: readonly number[]
  readonly heartbeat: number
}

export interface ClaimRecord {
  readonly kind: 'claim'
  readonly epoch: number
  readonly podId: string
  readonly nonce: string
  readonly incarnation: string
  readonly cause: Cause | 'UNKNOWN'
  /** The command that the claim follows; null: none. */
  readonly commandOffset: number | null
  /** For people. */
  readonly why: string
}

export interface VerifyRecord {
  readonly kind: 'verify'
  readonly podId: string
  readonly nonce: string
}

export interface CommandRecord {
  readonly kind: 'command'
  readonly id: string
  readonly command: (typeof commands)[number] | 'UNKNOWN'
  readonly target: string | null
  readonly force: boolean
  /** Of PRIORITY: the new one; null: the one of the pod's configuration. */
  readonly value: number | null
  /** Token epoch in the issuer's view: carried out by that epoch's holder, or by nobody. */
  readonly expectEpoch: number
  readonly issuer: string
  /** Address of who asked the issuer; null: not known. For people, and not signed. */
  readonly from: string | null
  /** HMAC where `ha.command-secret` is set. */
  readonly signature: string | null
}

export interface ReleaseRecord {
  readonly kind: 'release'
  readonly epoch: number
  readonly podId: string
  readonly incarnation: string
  readonly target: string | null
  readonly commitId: string | null
  readonly paused: boolean
  readonly commandOffset: number | null
  /** The holder used up its restarts. */
  readonly exhausted: boolean
  /** The holder did not become ACTIVE under this epoch. False from builds that do not tell it. */
  readonly unused: boolean
  readonly faults: readonly Fault[]
}

export interface ResultRecord {
  readonly kind: 'result'
  readonly commandOffset: number
  /** Name of the command; empty from builds that do not tell it. In a topic made anew another one may be at its offset. */
  readonly commandId: string
  readonly outcome: Outcome | 'UNKNOWN'
  readonly reason: string
}

export type HaRecord = StatusRecord | ClaimRecord | VerifyRecord | CommandRecord | ReleaseRecord | ResultRecord

/** A key whose record was deleted. */
export interface Deletion {
  readonly kind: 'deleted'
  readonly key: string
}

/** What cannot be read; counted, and otherwise ignored. */
export interface BadRecord {
  readonly kind: 'bad'
  readonly key: string
  readonly why: string
}

export interface Encoded {
  readonly key: string
  /** Null deletes the key. */
  readonly value: string | null
}

export function statusKey(podId: string): string {
  return `s/${podId}`
}

export function keyOf(record: HaRecord): string {
  switch (record.kind) {
    case 'status':
      return statusKey(record.podId)
    case 'claim':
      return `t/${record.epoch}/${record.podId}/${record.nonce}`
    case 'verify':
      return `v/${record.podId}`
    case 'command':
      return `c/${record.id}`
    case 'release':
      return `l/${record.epoch}`
    default:
      return `r/${record.commandOffset}`
  }
}

export function encode(record: HaRecord): Encoded {
  const { kind: _, ...fields } = record
  const value = { v: recordVersion, ...fields }
  const text =
    record.kind === 'status'
      ? JSON.stringify({
          ...value,
          understood: undefined,
          topologyShape: Object.fromEntries(record.topologyShape),
          configHashes: Object.fromEntries(record.configHashes),
        })
      : JSON.stringify(value)
  return { key: keyOf(record), value: text }
}

/** Never throws: what is no record of ours is `bad`, and says why. */
export function decode(key: string, value: string | null): HaRecord | Deletion | BadRecord {
  const bad = (why: string): BadRecord => ({ kind: 'bad', key: key.slice(0, 100), why })
  if (key.length > longestKey) return bad('its key is too long')
  const [kind, ...names] = key.split('/')
  if (names.some((name) => name === '' || name.length > longestName)) return bad('its key is none of ours')
  if (value === null) return { kind: 'deleted', key }
  if (value.length > largestRecordBytes) return bad(`it is longer than ${largestRecordBytes} bytes`)
  const fields = parseObject(value)
  if (fields === undefined) return bad('it is no JSON object')
  const decoder = decoders[kind as keyof typeof decoders]
  if (!Object.hasOwn(decoders, kind as string) || names.length !== decoder.names) return bad('its key is none of ours')
  return decoder.decode(names, fields) ?? bad('its fields are not those of its kind')
}

interface Decoder {
  /** Parts of the key behind its kind. */
  readonly names: number
  readonly decode: (names: readonly string[], fields: Fields) => HaRecord | undefined
}

const isOurs = (fields: Fields): boolean => wholeOf(fields, 'v', 1) === recordVersion

const decoders = {
  s: { names: 1, decode: ([podId], fields) => decodeStatus(podId as string, fields) },
  t: {
    names: 3,
    decode: ([epoch, podId, nonce], o) => decodeClaim(Number(epoch), podId as string, nonce as string, o),
  },
  v: {
    names: 1,
    decode: ([podId], fields) => {
      const nonce = textOf(fields, 'nonce', longestName)
      return nonce === undefined ? undefined : { kind: 'verify', podId: podId as string, nonce }
    },
  },
  c: { names: 1, decode: ([id], fields) => decodeCommand(id as string, fields) },
  l: { names: 1, decode: ([epoch], fields) => decodeRelease(Number(epoch), fields) },
  r: {
    names: 1,
    decode: ([offset], fields) => {
      const commandOffset = Number(offset)
      const outcome = oneOf(fields, 'outcome', outcomes)
      if (!Number.isSafeInteger(commandOffset) || outcome === undefined) return undefined
      const commandId = textOf(fields, 'commandId', longestName) ?? ''
      return {
        kind: 'result',
        commandOffset,
        commandId,
        outcome,
        reason: textOf(fields, 'reason', longestReason) ?? '',
      }
    },
  },
} as const satisfies Record<string, Decoder>

function decodeStatus(podId: string, o: Fields): StatusRecord | undefined {
  const incarnation = textOf(o, 'incarnation', longestName)
  const role = oneOf(o, 'role', roles)
  const state = oneOf(o, 'state', states)
  const understood = isOurs(o)
  // Of an unknown version nothing is required but a life's name: it is alive, that is all.
  if (understood && (incarnation === undefined || role === undefined || state === undefined)) return undefined
  return {
    kind: 'status',
    podId,
    understood,
    incarnation: incarnation ?? '',
    generation: wholeOf(o, 'generation') ?? null,
    role: understood ? (role ?? 'UNKNOWN') : 'UNKNOWN',
    state: understood ? (state ?? 'UNKNOWN') : 'UNKNOWN',
    restarting: flagOf(o, 'restarting') ?? false,
    paused: flagOf(o, 'paused') ?? false,
    tokenEpoch: wholeOf(o, 'tokenEpoch') ?? 0,
    tokenEpochSeen: wholeOf(o, 'tokenEpochSeen') ?? 0,
    commitId: textOf(o, 'commitId', longestName) ?? null,
    lagRecords: wholeOf(o, 'lagRecords') ?? 0,
    lagMs: wholeOf(o, 'lagMs') ?? 0,
    diskFull: flagOf(o, 'diskFull') ?? false,
    failoverPriority: wholeOf(o, 'failoverPriority') ?? 0,
    topologyHash: textOf(o, 'topologyHash', 128) ?? '',
    topologyShape: textsOf(o, 'topologyShape', 1000),
    configHashes: textsOf(o, 'configHashes', 200),
    build: textOf(o, 'build', longestName) ?? '',
    faults: decodeFaults(o),
    handoffInhibited: flagOf(o, 'handoffInhibited') ?? false,
    commandRead: wholeOf(o, 'commandRead') ?? null,
    refusedCommands: listOf(o, 'refusedCommands', mostRefused).filter(
      (each): each is number => Number.isSafeInteger(each) && (each as number) >= 0,
    ),
    heartbeat: wholeOf(o, 'heartbeat') ?? 0,
  }
}

/** A claim counts whatever its version: who holds the token is told by its key and its place in the log. */
function decodeClaim(epoch: number, podId: string, nonce: string, o: Fields): ClaimRecord | undefined {
  if (!Number.isSafeInteger(epoch) || epoch < 1) return undefined
  const incarnation = textOf(o, 'incarnation', longestName) ?? ''
  const cause = oneOf(o, 'cause', causes) ?? 'UNKNOWN'
  const why = textOf(o, 'why', longestReason) ?? ''
  const commandOffset = wholeOf(o, 'commandOffset') ?? null
  return { kind: 'claim', epoch, podId, nonce, incarnation, cause, commandOffset, why }
}

function decodeCommand(id: string, o: Fields): CommandRecord | undefined {
  const expectEpoch = wholeOf(o, 'expectEpoch')
  if (expectEpoch === undefined) return undefined
  return {
    kind: 'command',
    id,
    command: isOurs(o) ? (oneOf(o, 'command', commands) ?? 'UNKNOWN') : 'UNKNOWN',
    target: textOf(o, 'target', longestName) ?? null,
    force: flagOf(o, 'force') ?? false,
    value: wholeOf(o, 'value') ?? null,
    expectEpoch,
    issuer: textOf(o, 'issuer', longestName) ?? '',
    from: textOf(o, 'from', longestName) ?? null,
    signature: textOf(o, 'signature', 128) ?? null,
  }
}

function decodeRelease(epoch: number, o: Fields): ReleaseRecord | undefined {
  const podId = textOf(o, 'podId', longestName)
  const incarnation = textOf(o, 'incarnation', longestName)
  if (!Number.isSafeInteger(epoch) || podId === undefined || incarnation === undefined) return undefined
  return {
    kind: 'release',
    epoch,
    podId,
    incarnation,
    target: textOf(o, 'target', longestName) ?? null,
    commitId: textOf(o, 'commitId', longestName) ?? null,
    paused: flagOf(o, 'paused') ?? false,
    commandOffset: wholeOf(o, 'commandOffset') ?? null,
    exhausted: flagOf(o, 'exhausted') ?? false,
    unused: flagOf(o, 'unused') ?? false,
    faults: decodeFaults(o),
  }
}

function decodeFaults(o: Fields): Fault[] {
  return listOf(o, 'faults', mostFaults).flatMap((each) => {
    if (!isPlainObject(each)) return []
    const topic = textOf(each, 'topic', longestName)
    const partition = wholeOf(each, 'partition')
    const offset = wholeOf(each, 'offset')
    if (topic === undefined || partition === undefined || offset === undefined) return []
    return [{ topic, partition, offset, count: wholeOf(each, 'count', 1) ?? 1 }]
  })
}

export function samePlace(a: RecordPlace, b: RecordPlace): boolean {
  return a.topic === b.topic && a.partition === b.partition && a.offset === b.offset
}
