/** Broken variants of what the engine answers and promises, and of what it makes of a disk that fails. */
import { Committer } from '../../src/engine/commit/committer.ts'
import { Producer } from '../../src/engine/commit/producer.ts'
import { StoreReplay } from '../../src/engine/restore/store-replay.ts'
import { RetentionClock } from '../../src/state/stores/retention-clock.ts'
import type { DiskFaults } from './failing-disk.ts'
import { usualLimits } from './limits.ts'
import type { Mutant } from './world.ts'

const writeThrough = { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY }
const soundDisk: DiskFaults = { full: 0, fullMs: 50, fails: 0, synced: 0.1, powerCuts: 0, torn: 0 }

export const mutantsOfAnswers: readonly Mutant[] = [
  {
    name: 'resolution-that-fails-is-not-told',
    // Nobody hears of a question for an outcome that was not answered.
    world: { breaks: { atEnd: 0.2, again: 0.5, forMs: 150 } },
    broker: () => {
      let isUnknown = false
      return (name, args, call) =>
        call(args).catch((error: unknown) => {
          if (name === 'endTransaction') isUnknown = true
          if (name !== 'committedOffsets' || !isUnknown) throw error
          return new Promise(() => undefined)
        })
    },
  },
  {
    name: 'commit-that-took-effect-is-given-up',
    // The question what became of a commit is never answered by its own tag.
    world: { breaks: { atEnd: 0.2, again: 0.2, forMs: 30 }, zombies: 0 },
    broker: () => {
      let isUnknown = false
      return async (name, args, call) => {
        if (name === 'commitOffsetsInTransaction') isUnknown = false
        if (name === 'committedOffsets' && isUnknown) {
          isUnknown = false
          const committed = (await call(args)) as ReadonlyArray<{ readonly metadata: string }>
          return committed.map((each) => ({ ...each, metadata: '' }))
        }
        return call(args).catch((error: unknown) => {
          if (name === 'endTransaction') isUnknown = true
          throw error
        })
      }
    },
  },
  {
    name: 'outcome-before-the-fence',
    // What became of a commit is asked while its transaction may still end in either way.
    world: { breaks: { atEnd: 0.2, again: 0.2, forMs: 30 }, zombies: 0 },
    patch: () => {
      const { end, retake } = Producer.prototype
      const inDoubt = new WeakSet<Producer>()
      Producer.prototype.end = function (commit) {
        return end.call(this, commit).catch((error: unknown) => {
          inDoubt.add(this)
          throw error
        })
      }
      Producer.prototype.retake = function (confirm) {
        return inDoubt.delete(this) ? Promise.resolve() : retake.call(this, confirm)
      }
      return () => Object.assign(Producer.prototype, { end, retake })
    },
  },
  {
    name: 'producer-of-an-old-run-goes-on',
    // What a run had still to write when it ended is written nevertheless.
    world: {
      records: 120,
      brokerMs: 3,
      limits: { ...usualLimits, sizes: { ...usualLimits.sizes, outputBytes: 8, batchBytes: 8, aheadBytes: 96 } },
      disk: { bytes: 600, intervalMs: 200, rowsPerStep: 1 },
      diskFaults: { ...soundDisk, fails: 0.1 },
    },
    patch: () => {
      const { successor } = Producer.prototype
      Producer.prototype.successor = function () {
        return this
      }
      return () => {
        Producer.prototype.successor = successor
      }
    },
  },
  {
    name: 'retention-clock-not-taken-back',
    // A store forgets by rows that an abort has taken back.
    patch: () => {
      const { discard } = RetentionClock.prototype
      RetentionClock.prototype.discard = () => undefined
      return () => {
        RetentionClock.prototype.discard = discard
      }
    },
  },
  {
    name: 'outputs-of-the-next-epoch-thrown-away',
    // What comes while a commit is under way is forgotten, and does not wait behind it.
    patch: () => {
      const { outputs } = Committer.prototype
      Committer.prototype.outputs = function (epoch, batches) {
        if (epoch === this.machine.epoch) outputs.call(this, epoch, batches)
      }
      return () => {
        Committer.prototype.outputs = outputs
      }
    },
  },
  {
    name: 'commit-under-way-is-taken-for-the-next',
    // Who asks for a commit hears of one that began before.
    world: { asks: 10 },
    patch: () => {
      const { commitNow } = Committer.prototype
      Committer.prototype.commitNow = function (cause) {
        const { phase } = this.machine
        if (phase === 'IDLE' || phase === 'QUEUED') return commitNow.call(this, cause)
        return this.hold(true).then(() => void this.hold(false))
      }
      return () => {
        Committer.prototype.commitNow = commitNow
      }
    },
  },
  {
    name: 'emptied-behind-the-start',
    // A start does not wait for lanes that are to empty stores, and whose disk is full.
    world: { disk: writeThrough, diskFaults: { ...soundDisk, full: 0.2, fullMs: 200 } },
    patch: () => {
      const before = Object.getOwnPropertyDescriptor(StoreReplay.prototype, 'underWay') as PropertyDescriptor
      Object.defineProperty(StoreReplay.prototype, 'underWay', {
        ...before,
        get(this: StoreReplay) {
          return this.end === 0 ? 0 : before.get?.call(this)
        },
      })
      return () => Object.defineProperty(StoreReplay.prototype, 'underWay', before)
    },
  },
  {
    name: 'rows-lost-with-the-power',
    // What a machine that lost its power comes back with says that it has rows which were never synchronized.
    world: {
      crashes: 3,
      zombies: 0,
      disk: writeThrough,
      diskFaults: { ...soundDisk, powerCuts: 1, losesRowsOnly: true },
    },
  },
]
