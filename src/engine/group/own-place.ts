/**
 * What the group says of this process. Its member id changes when it joins anew, and an answer to a call that still bore
 * an earlier one reads as if another process had taken the place (`FENCED_INSTANCE_ID`): it was this process itself.
 */
import { sleep, type Timers } from '../../base/timers.ts'
import { BrokerError, type BrokerPort, type GroupMember } from '../../broker/port.ts'
import { RunOver } from '../run.ts'

const againMs = 100

export interface OwnPlace {
  member(): GroupMember
  /** The group shares out partitions to this process, or is about to: not with `ha.group-mode: assign`. */
  readonly isInGroup: boolean
  /** A request of its own, long given up, may have taken the place from it: it is about to ask for it anew. */
  readonly mayHaveReplacedItself: boolean
}

/** Whether an answer to a call as `asked` says nothing of another process. */
function isAboutEarlierSelf(error: unknown, asked: GroupMember, place: OwnPlace): boolean {
  if (!(error instanceof BrokerError) || error.code !== 'FENCED_INSTANCE_ID') return false
  return asked.memberId === '' || asked.memberId !== place.member().memberId || place.mayHaveReplacedItself
}

/** A call as the present member. An answer about an earlier self means no more than that the group went on meanwhile. */
export async function asMember(place: OwnPlace, call: (member: GroupMember) => Promise<void>): Promise<void> {
  const asked = place.member()
  try {
    await call(asked)
  } catch (error) {
    if (!isAboutEarlierSelf(error, asked, place)) throw error
    throw new BrokerError(
      'UNKNOWN_MEMBER_ID',
      `the group ${asked.groupId} knew this process by an earlier member id: it has joined anew`,
      'abortable',
      error,
    )
  }
}

/**
 * Rejects where the group has gone on without this process: for a commit that moves no offsets, with which the group would
 * have said so. Who is no member, as with `ha.group-mode: assign`, is told by the producer's identity alone.
 */
export async function confirmMember(broker: BrokerPort, place: OwnPlace): Promise<void> {
  if (!place.isInGroup) return
  if (place.member().memberId === '')
    throw new BrokerError(
      'UNKNOWN_MEMBER_ID',
      `the group ${place.member().groupId} went on without this process`,
      'abortable',
    )
  try {
    await asMember(place, (member) => broker.heartbeat(member))
  } catch (error) {
    // It is one of those whose places are shared out anew.
    if (!(error instanceof BrokerError) || error.code !== 'REBALANCE_IN_PROGRESS') throw error
  }
}

export interface PlaceOptions {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly place: OwnPlace
  /** Whoever asks does not wait for the answer any more. */
  readonly over: () => boolean
}

/**
 * Resolves where the group still has this process in its place, and rejects where another has taken it. While the place
 * is being taken anew it waits: without an id there is nobody to ask for.
 */
export async function confirmPlace({ broker, timers, place, over }: PlaceOptions): Promise<void> {
  for (;;) {
    if (over()) throw new RunOver('the run has ended')
    const asked = place.member()
    if (asked.memberId === '') {
      await sleep(timers, againMs)
      continue
    }
    try {
      await broker.heartbeat(asked)
      return
    } catch (error) {
      if (!isAboutEarlierSelf(error, asked, place)) throw error
      await sleep(timers, againMs)
    }
  }
}

/** It is worth another try. */
export function isPassing(error: BrokerError): boolean {
  return error.errorClass === 'unreachable' || error.errorClass === 'retriable'
}
