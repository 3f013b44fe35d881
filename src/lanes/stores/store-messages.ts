/** What the engine asks of a lane's stores: to be opened, filled, shown and given up. Each is answered. */
import { buffersOf } from '../../broker/wire/batch-pack.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { ToLane } from '../protocol.ts'
import type { TaskSet } from '../tasks/task-set.ts'

type StoreMessage = Extract<ToLane, { type: 'open' | 'restore' | 'dump' | 'close' }>

export function answerStores(tasks: TaskSet, message: StoreMessage, options: LaneOptions, run: number): void {
  const { toEngine, lane } = options
  switch (message.type) {
    case 'open':
      toEngine({ type: 'opened', lane, run, stores: tasks.open(message.tasks) }, [])
      return
    case 'restore': {
      const { store, partition } = message
      toEngine({ type: 'restored', lane, run, store, partition, records: tasks.restore(message) }, [])
      return
    }
    case 'dump': {
      const { store, partition } = message
      const dumped = tasks.dump(store, partition, message.from)
      toEngine({ type: 'dumped', lane, run, store, partition, ...dumped }, buffersOf(dumped.packs))
      return
    }
    case 'close':
      tasks.closeTasks(message.tasks)
      toEngine({ type: 'closed', lane, run, tasks: message.tasks }, [])
  }
}
