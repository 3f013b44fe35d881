import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/properties.ts'
import { RetentionClock } from '../../../src/state/stores/retention-clock.ts'

const retentionMs = 50
const none = Number.NEGATIVE_INFINITY

type Step =
  | { readonly kind: 'put' | 'seal' | 'begin'; readonly time: number }
  | { readonly kind: 'apply' | 'discard' | 'open' }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('put' as const, 'put' as const, 'seal' as const), time: fc.nat(300) }),
  fc.record({ kind: fc.constant('begin' as const), time: fc.nat(300) }),
  fc.record({ kind: fc.constantFrom('apply' as const, 'apply' as const, 'discard' as const, 'open' as const) }),
)

interface Reading {
  readonly newest: number
  readonly time: number
  readonly horizon: number
}

const unset: Reading = { newest: none, time: none, horizon: none }

/** The same by one list of readings: the committed one, then those of sealed epochs. */
class Model {
  newest = none
  floor = none
  committed = unset
  sealed: Reading[] = []

  horizon(time: number): number {
    return Math.max(this.floor, Math.min(this.newest, time) - retentionMs)
  }

  take(step: Step): void {
    switch (step.kind) {
      case 'put':
        this.newest = Math.max(this.newest, step.time)
        return
      case 'seal':
        this.sealed.push({ newest: this.newest, time: step.time, horizon: this.horizon(step.time) })
        return
      case 'begin': {
        const { newest, horizon } = this.committed
        const now = Math.min(newest, step.time) - retentionMs
        this.committed = { newest, time: step.time, horizon: Math.max(horizon, now) }
        return
      }
      case 'apply':
        this.committed = this.sealed.shift() ?? this.committed
        return
      case 'discard':
        this.sealed = []
        this.newest = this.committed.newest
        return
      case 'open':
        this.sealed = []
        this.newest = this.committed.newest
        this.floor = this.committed.horizon
        this.committed = { ...this.committed, time: none }
    }
  }
}

test('what is forgotten follows from what is committed, whatever is sealed, applied, discarded or opened anew', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const model = new Model()
      let clock = new RetentionClock(retentionMs)
      let [sealed, applied] = [0, 0]
      for (const each of steps) {
        model.take(each)
        if (each.kind === 'put') clock.observe(each.time)
        else if (each.kind === 'seal') clock.seal(++sealed, each.time)
        else if (each.kind === 'begin') clock.begin(each.time)
        else if (each.kind === 'apply') clock.applied(Math.min(sealed, ++applied))
        else if (each.kind === 'discard') clock.discard()
        else {
          const left = clock.stamp({ changelogOffset: 0, commitId: '', topicId: '' })
          clock = new RetentionClock(retentionMs)
          clock.resume(left)
        }
        if (each.kind !== 'put' && each.kind !== 'seal' && each.kind !== 'begin')
          applied = each.kind === 'apply' ? Math.min(sealed, applied) : sealed
        const { newest, time: at, horizon } = clock.committed
        assert.deepEqual({ newest, time: at, horizon }, model.committed)
        assert.equal(clock.newest, model.newest)
        for (const time of [0, 120, 400]) assert.equal(clock.horizon(time), model.horizon(time))
      }
    }),
    { numRuns: 300 },
  )
})
