/**
 * Every error the engine raises by name. The table gives who is to blame and how the engine recovers; a throw site
 * chooses only the code and fills the sentence. `docs/errors.md` is generated from here.
 */
export type ErrorDomain = 'user' | 'external' | 'internal'
export type ErrorRecovery = 'skip-record' | 'retry' | 'abort-epoch' | 'restart-engine' | 'stand-down' | 'stop'

interface ErrorRow {
  readonly domain: ErrorDomain
  readonly recovery: ErrorRecovery
  /** What the operator or the developer does next. */
  readonly advice: string
}

const row = (domain: ErrorDomain, recovery: ErrorRecovery, advice: string): ErrorRow => ({ domain, recovery, advice })

export const errorTable = {
  CONFIG_INVALID: row(
    'user',
    'stop',
    'Correct the named keys; `docs/config.md` lists every key with its type and default.',
  ),
  APPLICATION_INVALID: row(
    'user',
    'stop',
    'Export the result of `defineApp({ applicationId, build })` as the default export of the module.',
  ),
  TOPOLOGY_INVALID: row('user', 'stop', 'Change the `build` function as the message says.'),
  FEED_INVALID: row('user', 'stop', 'Correct the named line of the feed; what was stored before it stays stored.'),
  USAGE: row('user', 'stop', 'See `millrace --help`.'),
  DECODE_FAILED: row(
    'user',
    'abort-epoch',
    'Correct the producer, or set `errors.decoding` to `skip` or `dead-letter`.',
  ),
  PROCESSING_FAILED: row(
    'user',
    'abort-epoch',
    'Correct the function, or set `errors.processing` to `skip` or `dead-letter`.',
  ),
  PRODUCE_FAILED: row(
    'user',
    'abort-epoch',
    'Correct the value or the topic, or set `errors.producing` to `skip` or `dead-letter`.',
  ),
  SCHEMA_REFUSED: row(
    'user',
    'stop',
    'Register the schema that the message names, or change it so that it fits; `docs/guide/schema-registry.md`.',
  ),
  SCHEMAS_DAMAGED: row(
    'external',
    'stop',
    'Restore the file of the embedded schema registry from a copy, or begin with a new folder and new topics. Check the disk.',
  ),
  SCHEMA_UNAVAILABLE: row(
    'external',
    'restart-engine',
    'Nothing: the engine replays the record once the registry has answered. Check `schema-registry.url`.',
  ),
  BROKER_UNREACHABLE: row(
    'external',
    'retry',
    'Check `broker.bootstrap-servers`, the network and the broker; the engine goes on by itself.',
  ),
  BROKER_REFUSED: row('external', 'stop', 'Grant the permission or correct the credentials that the message names.'),
  BROKER_FILES_DAMAGED: row(
    'external',
    'stop',
    "Restore the embedded broker's folder from a copy; `millrace broker check <folder>` shows what is lost without one, `millrace broker repair` cuts it off. Check the disk.",
  ),
  BROKER_STOPPED: row(
    'external',
    'stop',
    "Look at the disk of the embedded broker's folder: is it full, or faulty? Where it is full, make room, and delete none of the broker's files. What was acknowledged is there.",
  ),
  TOPIC_MISSING: row(
    'external',
    'stop',
    'Create the topic, or correct its name in the application. Where it was deleted while the application ran: find out who did that first. One that has been made again in its place is read from its beginning by a new start, unless a store holds what was read of the old one (`docs/guide/state.md`).',
  ),
  GLOBAL_TABLE_LOST: row(
    'external',
    'restart-engine',
    'Nothing: the engine loads the table anew. Seen often, compact the topic, or let it keep its records for longer.',
  ),
  PARTITIONS_CHANGED: row(
    'external',
    'stop',
    'Begin anew under another `applicationId` that reads the topic from its beginning: the state of a key is where the old number put it.',
  ),
  TRANSACTION_ABORTED: row(
    'external',
    'restart-engine',
    'Nothing: the engine replays the transaction. Seen often, look at the broker.',
  ),
  FENCED: row('external', 'stand-down', 'Another process runs under the same identity; stop one of the two.'),
  FOREIGN_GROUP_MEMBER: row(
    'external',
    'stop',
    'Run one process, or set `topology.sub-topology-split` to `repartition-topics`.',
  ),
  OFFSETS_MISSING: row(
    'external',
    'stop',
    "Delete nothing, and leave the process stopped: find out who deleted the group's offsets, or the topic that the sentence names, or whether they expired (`offsets.retention.minutes`). Whether to begin anew under another `applicationId` is for the developers to decide: all input is read again, and results are written again.",
  ),
  STORE_AHEAD: row(
    'external',
    'stop',
    "The group's offsets were moved back behind the state. Put them back. Only where the changelogs went back with them, as in a cluster that was restored from a copy, move the folder of this application below `engine.state.dir` away: its stores are rebuilt. Over newer changelogs that counts records twice; then begin anew (`docs/guide/state.md`).",
  ),
  STORE_LOCKED: row('user', 'stop', 'Give every process its own `engine.state.dir`.'),
  STORE_UNAVAILABLE: row(
    'external',
    'retry',
    'Ask again once the application is RUNNING; on several processes ask the one that has the partition.',
  ),
  STORE_CORRUPT: row('external', 'restart-engine', 'Nothing: the store is rebuilt from its changelog. Check the disk.'),
  STATE_CHANGED: row(
    'user',
    'stop',
    'Do what the message says: give a changed store a new name, or go back to the application as it was; `millrace topology --diff` tells before a start.',
  ),
  CHANGELOG_LOST: row(
    'external',
    'stop',
    'Bring the changelog back, let it be written from the store on disk, or begin anew: `engine.state.lost-changelogs`.',
  ),
  CHANGELOG_UNREADABLE: row(
    'external',
    'stop',
    'Replace or delete the named record in the changelog, or go back to the serde that wrote it.',
  ),
  STORE_DISK_FULL: row(
    'external',
    'retry',
    'Enlarge the volume of `engine.state.dir`, or free space elsewhere on it; delete no file of a store. The engine goes on by itself.',
  ),
  TOO_MANY_FILES: row(
    'external',
    'stop',
    'Raise the limit of open files of the process (`ulimit -n`, `LimitNOFILE`) or of the machine, then start the process again.',
  ),
  BARRIER_TIMEOUT: row(
    'user',
    'restart-engine',
    'Look at `/debug/threads` and `/debug/barriers`: a function of the application does not return.',
  ),
  LANE_STUCK: row(
    'user',
    'stop',
    'A lane did not come back from a function of the application; see `/debug/threads` before the restart.',
  ),
  LANE_FAILED: row(
    'internal',
    'restart-engine',
    'The thread of a lane has ended; the message says of what, and the log has the stack of an error that nothing caught, or of a rejected promise that nobody handled. Where that is of the application, or where the application has called `process.exit`, its developers have to correct it; where memory ran out, give the process more. Else save the log for the maintainers of Millrace.',
  ),
  RESTARTS_EXHAUSTED: row(
    'internal',
    'stop',
    'Remove the cause that the message names; the log and `/debug/barriers` have those before it. Then start the process again.',
  ),
  INVARIANT_BROKEN: row(
    'internal',
    'stop',
    'Save the log of this process for the maintainers of Millrace. Where it has failed in the same way before, leave it stopped, or roll a new release back.',
  ),
  LICENSE_REFUSED: row('user', 'stop', 'See `/license` and `docs/license.md`.'),
  POD_UNREACHABLE: row('external', 'stop', 'Name a pod that runs with `--url`; `docs/guide/high-availability.md`.'),
  COMMAND_REFUSED: row(
    'external',
    'stop',
    'Do what the sentence says, then send the command again; `docs/guide/high-availability.md` explains each refusal.',
  ),
  PORT_TAKEN: row('user', 'stop', 'Set `runtime.http.port` to a free port.'),
} as const satisfies Record<string, ErrorRow>

/** The code of an error. `docs/errors.md` lists them all, with who has to act and what the engine does. */
export type ErrorCode = keyof typeof errorTable

export interface EngineErrorDetails {
  readonly cause?: unknown
  /** Coordinates of the record at hand. */
  readonly topic?: string
  readonly partition?: number
  readonly offset?: number
  readonly node?: string
  readonly lane?: number
  /** It came of being too slow for somebody else, not of a failure. */
  readonly late?: boolean
  /** The row of a store that cannot be read. */
  readonly row?: UnreadableRow
}

export interface UnreadableRow {
  readonly store: string
  readonly partition: number
  /** What cannot be decoded, as it lies in the changelog. */
  readonly bytes: Uint8Array
  readonly what: 'key' | 'value'
}

const mark = Symbol.for('millrace.EngineError')

/**
 * What Millrace throws: one sentence for people, a code for programs. The sentence says what happened, in which state,
 * and what to do next.
 *
 * @example
 * try {
 *   await startRuntime({ application: './app.ts' })
 * } catch (error) {
 *   if (EngineError.is(error) && error.code === 'PORT_TAKEN') process.exitCode = 2
 * }
 */
export class EngineError extends Error {
  /** Always `EngineError`. */
  override readonly name = 'EngineError'
  /** The code, by which programs tell errors apart. */
  readonly code: ErrorCode
  /** Who has to act: `user`, `external` (broker, network, disk), or `internal` (Millrace itself). */
  readonly domain: ErrorDomain
  /** What the engine does about it by itself. */
  readonly recovery: ErrorRecovery
  /** Where it happened, as far as that is known: topic, partition, offset, operator, lane; and the cause. */
  readonly details: EngineErrorDetails

  /** @internal */
  constructor(code: ErrorCode, message: string, details: EngineErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.domain = errorTable[code].domain
    this.recovery = errorTable[code].recovery
    this.details = details
    Object.defineProperty(this, mark, { value: true })
  }

  /** Whether an error is one of these, that of another copy of the package included. Use it instead of `instanceof`. */
  static is(error: unknown): error is EngineError {
    return typeof error === 'object' && error !== null && mark in error
  }
}

/** An error as plain data: `postMessage` keeps neither class nor code. */
export interface WireError {
  readonly code: ErrorCode | 'UNKNOWN'
  readonly message: string
  readonly stack: string | undefined
  readonly details: Omit<EngineErrorDetails, 'cause'>
}

export function toWireError(error: unknown): WireError {
  if (EngineError.is(error)) {
    const { cause: _, ...details } = error.details
    return { code: error.code, message: error.message, stack: error.stack, details }
  }
  const e = error instanceof Error ? error : new EngineError('INVARIANT_BROKEN', String(error))
  return { code: 'UNKNOWN', message: e.message, stack: e.stack, details: {} }
}

export function fromWireError(wire: WireError): EngineError {
  const error = new EngineError(wire.code === 'UNKNOWN' ? 'INVARIANT_BROKEN' : wire.code, wire.message, wire.details)
  if (wire.stack !== undefined) error.stack = wire.stack
  return error
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  try {
    if (error instanceof Error) return `${error.message}`
    return typeof error === 'object' && error !== null ? textOf(error) : String(error)
  } catch {
    return 'what was thrown has no text'
  }
}

const mostTextChars = 1000

/** Objects are thrown as well: answers of services, mostly. */
function textOf(thrown: object): string {
  const { message } = thrown as { readonly message?: unknown }
  if (typeof message === 'string' && message !== '') return message
  const text = String(thrown)
  return text === '[object Object]' ? JSON.stringify(thrown).slice(0, mostTextChars) : text
}
