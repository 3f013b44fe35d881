/** Where the messages of the lanes go. */
import type { FromLane } from '../lanes/protocol.ts'
import type { Commits } from './commits.ts'
import type { EngineOptions } from './engine-options.ts'
import type { LaneReset } from './lane-reset.ts'
import { resolveSinks } from './lane-setup.ts'
import type { Processing } from './processing.ts'
import type { Recovery } from './recovery.ts'
import type { Restorer } from './restorer.ts'
import type { Schedules } from './schedules.ts'

export interface LaneReceivers {
  readonly restorer: Restorer
  readonly processing: Processing
  readonly commits: Commits
  readonly schedules: Schedules
  readonly laneReset: LaneReset
  readonly recovery: Recovery
}

/** The message is of the run under way. */
export function takeLaneMessage(options: EngineOptions, to: LaneReceivers, message: FromLane): void {
  switch (message.type) {
    case 'opened':
    case 'restored':
    case 'loaded':
    case 'started':
      to.restorer.laneMessage(message)
      return
    case 'consumed':
      to.processing.flow?.consumed(message.lane, message.bytes)
      return
    case 'out':
      to.commits.touched()
      to.commits.written(message.epoch, message.packs)
      return
    case 'ack':
    case 'applied':
      to.commits.committer?.laneMessage(message)
      return
    case 'commit-wanted':
      to.commits.touched(message.forgets)
      if (message.urgent) to.commits.committer?.trigger('requested')
      return
    case 'crowded':
      to.processing.flow?.crowded(message.lane, message.crowded)
      return
    case 'emitted':
      to.schedules.emitted(message.source, message.count, message.records)
      return
    case 'resolve-topics':
      void to.recovery.guard(() => resolveSinks(options, message.lane, message.topics))
      return
    case 'reset-done':
      to.laneReset.laneDone(message.lane)
      return
    case 'fault':
      to.recovery.laneFault(message)
  }
}
