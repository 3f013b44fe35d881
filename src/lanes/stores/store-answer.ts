/** A lane's answer to a question about its stores: rows, or why there are none. */
import { EngineError, toWireError } from '../../base/errors.ts'
import type { LaneAnswer, LaneQuery } from '../protocol.ts'
import type { TaskSet } from '../tasks/task-set.ts'
import { queryStores } from './store-query.ts'

/** `tasks`: undefined while their stores are not complete. */
export function answerOf(tasks: TaskSet | undefined, { id, store, query, limit }: LaneQuery): LaneAnswer {
  try {
    if (tasks === undefined) {
      throw new EngineError('STORE_UNAVAILABLE', `the store ${store} is not complete yet: its state is being restored`)
    }
    return { type: 'answer', id, ...queryStores(tasks.queried(store), query, limit) }
  } catch (error) {
    return { type: 'answer', id, rows: [], count: 0, error: toWireError(error) }
  }
}
