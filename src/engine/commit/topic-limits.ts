/**
 * What topics were found to refuse, where their settings could not be read or have changed since. Kept as long as the
 * connection: lanes hear of it when a run begins.
 */
import { BrokerError, type BrokerPort } from '../../broker/port.ts'

/** As far as they were found out; infinite where nothing was refused yet. */
export interface FoundLimits {
  /** The largest batch that the topic may take: a byte less than the smallest record that it refused by itself. */
  readonly maxBatchBytes: number
  /** How far ahead of the clock an event time may be, milliseconds. */
  readonly mostAheadMs: number
  /** How old an event time may be, milliseconds. */
  readonly mostBehindMs: number
  /** It refused a record without a key, as it does where it is compacted. */
  readonly needsKey: boolean
}

export type Found = ReadonlyMap<string, FoundLimits>

/** A refusal from which the run that follows knows more than this one: a restart brings it further, however many there are. */
export class LimitFound extends BrokerError {}

const none: FoundLimits = {
  maxBatchBytes: Number.POSITIVE_INFINITY,
  mostAheadMs: Number.POSITIVE_INFINITY,
  mostBehindMs: Number.POSITIVE_INFINITY,
  needsKey: false,
}

const byBroker = new WeakMap<BrokerPort, Found>()

/** All that was found out until now; what is found later is not in it. */
export function foundUntilNow(broker: BrokerPort): Found {
  return byBroker.get(broker) ?? new Map()
}

export function foundLimits(broker: BrokerPort, topic: string): FoundLimits {
  return foundUntilNow(broker).get(topic) ?? none
}

function narrow(broker: BrokerPort, topic: string, limits: Partial<FoundLimits>): void {
  const before = foundLimits(broker, topic)
  const { maxBatchBytes, mostAheadMs, mostBehindMs, needsKey } = { ...none, ...limits }
  const now = {
    maxBatchBytes: Math.min(before.maxBatchBytes, maxBatchBytes),
    mostAheadMs: Math.min(before.mostAheadMs, mostAheadMs),
    mostBehindMs: Math.min(before.mostBehindMs, mostBehindMs),
    needsKey: before.needsKey || needsKey,
  }
  byBroker.set(broker, new Map(foundUntilNow(broker)).set(topic, now))
}

/** A single record that its topic refused. */
export interface RefusedRecord {
  readonly topic: string
  readonly partition: number
  /** What it takes, with the head of a batch. */
  readonly bytes: number
  readonly timestamp: number
  readonly cause: BrokerError
}

/** What the run ends with, if not at once. */
export interface Verdict {
  readonly error: BrokerError
  /** Further refusals of this run may tell more. */
  readonly isMoreToFind: boolean
}

/** Notes what the refusal tells of the topic. `known` was found before the run began: its lanes were told. */
export function judge(broker: BrokerPort, known: Found, refused: RefusedRecord, now: number): Verdict {
  const before = known.get(refused.topic) ?? none
  if (saysTooLarge(refused.cause)) return ofSize(broker, before, refused)
  return saysKeyless(refused.cause) ? ofKey(broker, before, refused) : ofTime(broker, before, refused, now)
}

/** It refuses the batch for what single records of it are: others might be taken. */
export function isOfRecords(error: unknown): error is BrokerError {
  if (!(error instanceof BrokerError)) return false
  return saysTooLarge(error) || saysKeyless(error) || error.code === 'INVALID_TIMESTAMP'
}

/** What else is refused with this code has other reasons. */
function saysKeyless({ code, message }: BrokerError): boolean {
  return code === 'INVALID_RECORD' && message.includes('without key')
}

export function saysTooLarge({ code }: BrokerError): boolean {
  return code === 'MESSAGE_TOO_LARGE' || code === 'RECORD_LIST_TOO_LARGE'
}

/**
 * Of two sizes between the largest that the topic took and the smallest that it refused, one may fit: the broker judges each
 * of them, and nothing is guessed that a policy would pass over.
 */
function ofSize(broker: BrokerPort, before: FoundLimits, { topic, partition, bytes, cause }: RefusedRecord): Verdict {
  const sentence = `A record of ${bytes} bytes for ${topic}:${partition} is too large for it. ${cause.message}`
  // The lanes know that it is not taken. If it comes nevertheless, it is no output.
  if (bytes > before.maxBatchBytes) {
    return { error: new BrokerError(cause.code, sentence, 'record', cause), isMoreToFind: false }
  }
  narrow(broker, topic, { maxBatchBytes: bytes - 1 })
  return { error: new LimitFound(cause.code, sentence, 'abortable', cause), isMoreToFind: true }
}

function ofKey(broker: BrokerPort, before: FoundLimits, { topic, partition, cause }: RefusedRecord): Verdict {
  const sentence = `A record for ${topic}:${partition} has no key. ${cause.message}`
  if (before.needsKey) return { error: new BrokerError(cause.code, sentence, 'record', cause), isMoreToFind: false }
  narrow(broker, topic, { needsKey: true })
  return { error: new LimitFound(cause.code, sentence, 'abortable', cause), isMoreToFind: false }
}

/** For so long a record may be under way between the lane that lets it pass and the broker that refuses it. */
const underWayMs = 60_000

/**
 * Only the first such restart is certain to bring the run further, and costs nothing: what is ahead of the clock is less so at
 * each attempt, and the clocks of brokers differ.
 */
function ofTime(broker: BrokerPort, before: FoundLimits, refused: RefusedRecord, now: number): Verdict {
  const { topic, partition, timestamp, cause } = refused
  const sentence = `A record for ${topic}:${partition} has an event time that it does not take. ${cause.message}`
  const aheadMs = timestamp - now
  if (aheadMs > before.mostAheadMs || -aheadMs > before.mostBehindMs + underWayMs) {
    return { error: new BrokerError(cause.code, sentence, 'record', cause), isMoreToFind: false }
  }
  const told = toldTimes(cause, now)
  const isFirst = Math.min(before.mostAheadMs, before.mostBehindMs) === Number.POSITIVE_INFINITY
  narrow(broker, topic, told ?? guessedTimes(aheadMs, isFirst))
  const error = new (isFirst ? LimitFound : BrokerError)(cause.code, sentence, 'abortable', cause)
  return { error, isMoreToFind: told === undefined }
}

/** Kafka's sentence about a record whose time it refuses. */
const range = /should be within \[(-?\d+), (-?\d+)\]/

/** How far from the clock the topic takes event times, where its broker says so in the refusal. */
function toldTimes({ message }: BrokerError, now: number): Partial<FoundLimits> | undefined {
  const found = range.exec(message)
  if (found === null) return undefined
  const [earliest, latest] = [Number(found[1]), Number(found[2])]
  // Without a limit ahead Kafka's sum runs over, and comes out far below zero.
  return { mostBehindMs: now - earliest, ...(latest > earliest && latest > 0 && { mostAheadMs: latest - now }) }
}

/**
 * What is ahead has come nearer to the clock by the time that the replay brings it again. It is not to be taken then: it
 * would be refused once more, and so on until its time has come. Where that happens, the restart took longer than was thought.
 */
function guessedTimes(aheadMs: number, isFirst: boolean): Partial<FoundLimits> {
  if (aheadMs <= 0) return { mostBehindMs: -aheadMs }
  return { mostAheadMs: aheadMs - (isFirst ? Math.min(underWayMs, aheadMs / 10) : aheadMs / 4) }
}
