/** Where the messages of the lanes go. */
import type { FromLane } from '../lanes/protocol.ts'
import type { Commits } from './commit/commits.ts'
import type { EngineOptions } from './engine-options.ts'
import type { LaneReset } from './recovery/lane-reset.ts'
import { resolveSinks } from './restore/lane-setup.ts'
import type { Processing } from './processing.ts'
import type { Recovery } from './recovery/recovery.ts'
import type { Reports } from './reports.ts'
import type { Restorer } from './restore/restorer.ts'
import type { Run } from './run.ts'
import type { Schedules } from './schedules.ts'

export interface LaneReceivers {
  readonly restorer: Restorer
  readonly processing: Processing
  readonly commits: Commits
  readonly schedules: Schedules
  readonly laneReset: LaneReset
  readonly recovery: Recovery
  readonly reports: Reports
}

/** The message is of this run, which is under way. */
export function takeLaneMessage(options: EngineOptions, to: LaneReceivers, run: Run, message: FromLane): void {
  switch (message.type) {
    case 'opened':
    case 'restored':
    case 'loaded':
    case 'dumped':
      to.restorer.laneMessage(message)
      return
    case 'started':
      to.processing.flow?.known.held.holds(message.lane, message.held)
      to.restorer.laneMessage(message)
      return
    case 'consumed':
      to.processing.flow?.consumed(message.lane, message.bytes)
      return
    case 'finished':
      to.processing.flow?.finished(message.lane, message.keys)
      return
    case 'out':
      to.commits.written(message.epoch, message.packs)
      return
    case 'ack':
      to.processing.flow?.known.held.holds(message.lane, message.held)
      to.commits.committer?.laneMessage(message)
      return
    case 'applied':
      to.commits.committer?.laneMessage(message)
      return
    case 'commit-wanted':
      to.commits.wanted(message.epoch, message.forgets)
      if (message.urgent) to.commits.committer?.trigger('requested')
      return
    case 'overloaded':
      to.processing.flow?.overloaded(message.lane, message.overloaded)
      return
    case 'emitted':
      to.schedules.emitted(message.source, message.count, message.records)
      return
    case 'resolve-topics':
      void to.recovery.guard(() => resolveSinks(options, message.lane, message.topics))
      return
    case 'disk-full':
      to.reports.diskFull(message.lane, message.sentence)
      // A lane of a number of its own: one that is overloaded as well is told of apart.
      to.processing.flow?.overloaded(-1 - message.lane, message.sentence !== null)
      return
    case 'notice':
      to.reports.notice(message.message, message.about)
      return
    case 'log':
      options.fact({ type: 'log', component: 'app', ...message.line })
      return
    case 'reset-done':
      to.laneReset.laneDone(message.lane)
      return
    case 'fault':
      to.recovery.laneFault(run, message)
  }
}
