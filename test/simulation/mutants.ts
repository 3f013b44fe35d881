/**
 * Broken variants of the protocol. Each is a mistake that somebody could make; the checkers have to notice every one of
 * them, or they check nothing. Where it takes a rare coincidence for one to show, its `world` makes that less rare.
 */
import type { FetchRequest, OffsetToCommit } from '../../src/broker/port.ts'
import type { FromLane, LaneToLane, StorePartition, ToLane } from '../../src/lanes/protocol.ts'
import type { Checkpoint } from '../../src/state/contract.ts'
import { Emission, Emissions } from '../../src/operators/emission.ts'
import { RowChanges } from '../../src/state/rows/row-changes.ts'
import { ToldRows } from '../../src/state/stores/told-rows.ts'
import { eachBatch } from '../../src/broker/wire/batch-pack.ts'
import type { Mutant } from './world.ts'

type Ack = Extract<FromLane, { type: 'ack' }>

export const mutants: readonly Mutant[] = [
  {
    name: 'checkpoint-ahead-of-its-rows',
    // A store that is written in steps is called complete with the first of them.
    disk: (changes, checkpoint) => {
      if (checkpoint?.ahead === undefined) return [changes, checkpoint]
      const { ahead, ...rest } = checkpoint
      return [changes, { ...rest, changelogOffset: ahead }]
    },
  },
  {
    name: 'rows-ahead-of-their-checkpoint',
    // A crash between two steps leaves rows of which the checkpoint knows nothing.
    disk: (changes, checkpoint) => {
      if (checkpoint?.ahead === undefined) return [changes, checkpoint]
      const { ahead: _, ...rest } = checkpoint
      return [changes, rest]
    },
  },
  {
    name: 'apply-before-commit',
    // The lanes write the epoch's state as soon as the barrier has reached them, before the broker has committed.
    messages: () => {
      const marks: Array<{ message: Extract<ToLane, { type: 'barrier' }>; send: (m: ToLane) => void }> = []
      const known = new Map<string, Checkpoint>()
      return {
        toLane: (message, send) => {
          if (message.type === 'barrier') marks.push({ message, send })
          if (message.type === 'restore') known.set(`${message.store}/${message.partition}`, message.checkpoint)
          if (message.type === 'result') {
            for (const c of message.checkpoints) known.set(`${c.store}/${c.partition}`, c.checkpoint)
            // The lanes have applied it already; only the answer is still wanted.
            send({ ...message, checkpoints: [] })
            return
          }
          send(message)
        },
        fromLane: (message, send) => {
          send(message)
          if (message.type !== 'ack') return
          const mine = marks.filter((m) => m.message.epoch === message.epoch && m.message.run === message.run)
          const checkpoints: Array<StorePartition & { checkpoint: Checkpoint }> = []
          for (const pack of message.changelogs) {
            eachBatch(pack, (store, partition) => {
              const checkpoint = known.get(`${store}/${partition}`)
              if (checkpoint) checkpoints.push({ store, partition, checkpoint })
            })
          }
          const { run, epoch } = message
          for (const mark of mine) mark.send({ type: 'result', run, epoch, commitId: '', checkpoints })
        },
      }
    },
  },
  {
    name: 'mark-before-data',
    // The barrier overtakes the records dispatched just before it.
    messages: () => {
      let held: { message: ToLane; send: (m: ToLane) => void } | undefined
      return {
        toLane: (message, send) => {
          if (message.type === 'data' && held === undefined) {
            held = { message, send }
            return
          }
          send(message)
          if (held) {
            held.send(held.message)
            held = undefined
          }
        },
      }
    },
  },
  {
    name: 'offset-one-ahead',
    broker: () => (name, args, call) => {
      if (name !== 'commitOffsetsInTransaction') return call(args)
      const [id, identity, member, offsets] = args as [string, unknown, unknown, OffsetToCommit[]]
      return call([id, identity, member, offsets.map((o) => ({ ...o, offset: o.offset + 1 }))])
    },
  },
  {
    name: 'offsets-never-committed',
    broker: () => (name, args, call) => (name === 'commitOffsetsInTransaction' ? Promise.resolve() : call(args)),
  },
  {
    name: 'offsets-outside-the-transaction',
    // Offsets take effect at once, whatever becomes of the transaction.
    broker: () => (name, args, call, other) =>
      name === 'commitOffsetsInTransaction' ? other('commitOffsets', [args[2], args[3]]) : call(args),
  },
  {
    name: 'nobody-is-fenced',
    // Every process has a transactional id of its own and commits past the group: a zombie goes on beside its successor.
    broker: () => {
      const own = `mutant-${++processes}`
      return (name, args, call) => {
        if (name === 'initProducer' || name === 'endTransaction') return call([own, ...args.slice(1)])
        if (name === 'produce') return call([{ ...(args[0] as object), transactionalId: own }])
        if (name === 'heartbeat') return Promise.resolve()
        if (name !== 'commitOffsetsInTransaction') return call(args)
        const member = { ...(args[2] as object), memberId: '', generationId: -1, groupInstanceId: null }
        return call([own, args[1], member, args[3]])
      }
    },
  },
  {
    name: 'read-uncommitted-restore',
    broker: () => (name, args, call) => {
      if (name !== 'fetch') return call(args)
      const [request] = args as [FetchRequest]
      return call([{ ...request, isolation: 'read_uncommitted' }]).then((answer) =>
        (answer as Array<{ aborted: unknown }>).map((part) => ({ ...part, aborted: [] })),
      )
    },
  },
  {
    name: 'lost-handoff',
    messages: () => {
      let n = 0
      return {
        laneToLane: (message, send) => (message.type === 'handoff' && ++n % 7 === 0 ? undefined : send(message)),
      }
    },
  },
  {
    name: 'handoff-behind-its-mark',
    messages: () => {
      let held: { message: LaneToLane; send: (m: LaneToLane) => void } | undefined
      return {
        laneToLane: (message, send) => {
          if (message.type === 'handoff' && held === undefined) {
            held = { message, send }
            return
          }
          send(message)
          if (held && message.type === 'hand-barrier') {
            held.send(held.message)
            held = undefined
          }
        },
      }
    },
  },
  {
    name: 'handed-over-twice',
    messages: () => {
      let n = 0
      return {
        laneToLane: (message, send) => {
          send(message)
          if (message.type === 'handoff' && ++n % 5 === 0) send({ ...message, buffer: message.buffer.slice(0) })
        },
      }
    },
  },
  {
    name: 'outcome-taken-for-committed',
    // An answer that never came is taken for a yes. It shows where the request never came either, and a crash or a restart
    // before the next commit, which carries all along: here every other request to commit is lost.
    world: { crashes: 4, disk: null, records: 120 },
    broker: () => {
      let n = 0
      return (name, args, call) => {
        if (name !== 'endTransaction') return call(args)
        return ++n % 2 === 0 ? Promise.resolve(args[1]) : call(args).catch(() => args[1])
      }
    },
  },
  {
    name: 'announced-before-it-is-read',
    // How far those who feed a repartition topic have come counts at once, whatever of theirs is still to be read.
    broker: () => async (name, args, call) => {
      const answer = await call(args)
      if (name !== 'listOffsets' || args[1] !== 'latest') return answer
      return (answer as ReadonlyArray<object>).map((end) => ({ ...end, offset: 0 }))
    },
  },
  {
    name: 'commit-repeated-as-abort',
    broker: () => (name, args, call) => (name === 'endTransaction' ? call([args[0], args[1], false]) : call(args)),
  },
  {
    name: 'restore-skipped',
    // Stores are taken for complete as they are.
    messages: () => ({
      toLane: (message, send) =>
        send(message.type === 'restore' ? { ...message, records: new Uint8Array(0) } : message),
    }),
  },
  {
    name: 'output-of-the-next-epoch',
    // What belongs to the next transaction is sent with this one.
    messages: () => ({
      fromLane: (message, send) =>
        send(message.type === 'out' ? { ...message, epoch: Math.max(1, message.epoch - 1) } : message),
    }),
  },
  {
    name: 'changelog-dropped',
    messages: () => {
      let n = 0
      return {
        fromLane: (message, send) =>
          send(
            message.type === 'ack' && ++n % 3 === 0
              ? { ...message, changelogs: (message as Ack).changelogs.slice(1) }
              : message,
          ),
      }
    },
  },
  {
    name: 'fold-across-a-commit',
    // What changed is told with the next commit, and as if it had changed in that epoch.
    world: { foldsMs: 500 },
    patch: () => {
      const { tell } = Emission.prototype
      let n = 0
      Emission.prototype.tell = function (...args) {
        return ++n % 3 === 0 ? undefined : tell.apply(this, args)
      }
      return () => {
        Emission.prototype.tell = tell
      }
    },
  },
  {
    name: 'lost-last-update',
    // The last of the changed rows is not told.
    world: { foldsMs: 500 },
    patch: () => {
      const { next } = RowChanges.prototype
      RowChanges.prototype.next = function () {
        return next.call(this) && (this.count === 1 || this.at < this.count)
      }
      return () => {
        RowChanges.prototype.next = next
      }
    },
  },
  {
    name: 'old-value-of-the-wrong-commit',
    // A told row comes with the value that it has now instead of the one that was told before.
    world: { foldsMs: 500 },
    patch: () => {
      const before = Object.getOwnPropertyDescriptor(ToldRows.prototype, 'before') as PropertyDescriptor
      Object.defineProperty(ToldRows.prototype, 'before', {
        ...before,
        get(this: ToldRows) {
          return before.get?.call(this) === null ? null : this.value
        },
      })
      return () => Object.defineProperty(ToldRows.prototype, 'before', before)
    },
  },
  {
    name: 'watermark-ahead-of-what-is-folded',
    // Deeper levels, and windows below in the same task, do not wait for what is still to be told.
    world: { foldsMs: 500 },
    patch: () => {
      const of = (name: 'heldTo' | 'heldBelow'): PropertyDescriptor =>
        Object.getOwnPropertyDescriptor(Emissions.prototype, name) as PropertyDescriptor
      const was = { heldTo: of('heldTo'), heldBelow: of('heldBelow') }
      for (const [name, each] of Object.entries(was))
        Object.defineProperty(Emissions.prototype, name, { ...each, get: () => Number.POSITIVE_INFINITY })
      return () => Object.defineProperties(Emissions.prototype, was)
    },
  },
]

let processes = 0
