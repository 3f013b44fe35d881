/** For whoever reads a topic for people: they are not to wait for ever, and not to take a part for the whole. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../base/errors.ts'
import type { TopicPartition } from '../base/ids.ts'

const pauseMs = 100
/** An election takes seconds. With the waits of the broker itself these are ten or so. */
const mostInVain = 30

/** @throws EngineError `BROKER_UNREACHABLE` after some seconds in vain. */
export async function askAgain({ topic, partition }: TopicPartition, vain: number): Promise<undefined> {
  if (vain < mostInVain) return sleep(pauseMs)
  throw new EngineError(
    'BROKER_UNREACHABLE',
    `the broker shows nothing of ${topic}:${partition}, where more was committed: its leader may be away; nothing was concluded from what could be read`,
  )
}
