import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { cronFault, nextFiring } from '../../../src/time/schedule.ts'

const utc = (text: string): number => Date.parse(`${text}Z`)
const every = (everyMs: number) => ({ everyMs, cron: undefined })
const cron = (expression: string) => ({ everyMs: undefined, cron: expression })

describe('the next firing of an interval', () => {
  test('is one interval after the last', () => {
    assert.equal(nextFiring(every(1000), 5000, 5000), 6000)
    assert.equal(nextFiring(every(1000), 5000, 5999), 6000)
    assert.equal(nextFiring(every(1000), 5000, 6000), 6000)
  })

  test('makes up for many missed ones by the latest of them, and keeps the grid', () => {
    assert.equal(nextFiring(every(1000), 5000, 9700), 9000)
    assert.equal(nextFiring(every(1000), 9000, 9700), 10_000)
  })

  test('never comes twice, nor before the last one, when the clock is set back', () => {
    assert.equal(nextFiring(every(1000), 5000, 1000), 6000)
  })

  test('lies on the grid, after the last one, and leaves no due one out but the missed', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.nat(100_000), fc.nat(100_000), (everyMs, lastMs, now) => {
        const due = nextFiring(every(everyMs), lastMs, now)
        assert.equal((due - lastMs) % everyMs, 0)
        assert.ok(due > lastMs)
        assert.ok(due > now - everyMs)
      }),
    )
  })
})

describe('the next firing of a cron expression', () => {
  test('is its next instant in UTC', () => {
    const last = utc('2026-03-29T00:30:00')
    assert.equal(nextFiring(cron('0 * * * *'), last, last), utc('2026-03-29T01:00:00'))
    assert.equal(nextFiring(cron('30 2 * * *'), last, last), utc('2026-03-29T02:30:00'))
  })

  test('makes up for many missed ones by the latest of them', () => {
    const last = utc('2026-01-01T00:00:00')
    assert.equal(nextFiring(cron('0 * * * *'), last, utc('2026-01-05T17:20:00')), utc('2026-01-05T17:00:00'))
    assert.equal(nextFiring(cron('0 * * * *'), last, utc('2026-01-05T17:00:00')), utc('2026-01-05T17:00:00'))
    assert.equal(nextFiring(cron('0 * * * *'), last, utc('2026-01-05T16:59:59.999')), utc('2026-01-05T16:00:00'))
  })

  test('knows seconds', () => {
    const last = utc('2026-01-01T00:00:00')
    assert.equal(nextFiring(cron('*/10 * * * * *'), last, last + 1), last + 10_000)
    assert.equal(nextFiring(cron('*/10 * * * * *'), last, last + 25_500), last + 20_000)
  })

  test('is never for an instant that is past for good', () => {
    const last = utc('2026-01-01T00:00:00')
    assert.equal(nextFiring(cron('0 0 0 1 1 * 2020'), last, last), Number.POSITIVE_INFINITY)
  })

  test('fires at every instant once when followed', () => {
    fc.assert(
      fc.property(fc.nat(10_000_000), fc.array(fc.nat(90_000), { minLength: 1, maxLength: 20 }), (begin, waits) => {
        let now = utc('2026-02-27T23:00:00') + begin
        let last = now
        for (const wait of waits) {
          const due = nextFiring(cron('*/2 * * * *'), last, now)
          assert.ok(due > last)
          assert.equal(due % 120_000, 0)
          assert.ok(due > now - 120_000)
          if (due <= now) last = due
          else assert.ok(Math.floor(now / 120_000) * 120_000 <= last || last === now || due - 120_000 <= last)
          now += wait
        }
      }),
      { numRuns: 50 },
    )
  })

  test('tells what is wrong with an expression', () => {
    assert.equal(cronFault('*/5 * * * *'), undefined)
    assert.match(cronFault('61 * * * *') ?? '', /minute|range|61/i)
    assert.notEqual(cronFault('never'), undefined)
  })
})
