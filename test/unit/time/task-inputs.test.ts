import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Watermarks } from '../../../src/time/watermarks.ts'
import { epoch, Story } from './story.ts'

const joined = { task: '0_0' }
const other = { task: '0_1' }

describe('partitions that feed one task', () => {
  test('a record waits for what its table is known to have, and goes behind an older row', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 2 })
    story.feed('stream', [50])
    assert.equal(story.next(), null)
    story.feed('table', [10], 1)
    assert.deepEqual(story.all(), ['table@10/10'], 'the next row is known to be there')
    story.feed('table', [40])
    assert.deepEqual(story.all(), ['table@40/40', 'stream@50/40'])
  })

  test('a table that is read to its end is not waited for', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 0 })
    story.feed('stream', [50])
    assert.deepEqual(story.all(), ['stream@50/-'])
    story.feed('stream', [60], 5)
    assert.deepEqual(story.all(), ['stream@60/-'], 'nobody waits for itself')
  })

  test('a partition that nobody has looked at is waited for', () => {
    const story = new Story().assign('stream', joined).assign('table', joined)
    story.feed('stream', [50])
    assert.equal(story.next(), null)
    story.empty('table')
    assert.deepEqual(story.all(), ['stream@50/-'])
  })

  test('a fetch that failed tells nothing: the wait goes on', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 1 })
    story.feed('stream', [50])
    story.watermarks.evidence(story.handle('table'), 0, true, story.now)
    assert.equal(story.next(), null)
  })

  test('markers and aborted records alone end the wait too', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 3 })
    story.feed('stream', [50]).empty('table')
    assert.deepEqual(story.all(), ['stream@50/-'])
  })

  test('other tasks go on, though their records are younger', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 1 })
    story.assign('elsewhere', { ...other, lag: 2 })
    story.feed('stream', [50]).feed('elsewhere', [70, 80])
    assert.deepEqual(story.all(), ['elsewhere@70/-', 'elsewhere@80/-'])
    story.feed('table', [60])
    assert.deepEqual(story.all(), ['stream@50/50', 'table@60/50'])
  })

  test('the watermark does not pass a record that waits', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 0 })
    story.assign('elsewhere', { ...other, lag: 2 })
    story.feed('stream', [10]).feed('table', [11]).feed('elsewhere', [12])
    assert.deepEqual(story.all(), ['stream@10/10', 'table@11/10', 'elsewhere@12/10'])
    story.watermarks.evidence(story.handle('table'), 1, false, story.now)
    story.feed('stream', [20]).feed('elsewhere', [90])
    assert.deepEqual(story.all(), ['elsewhere@90/11'])
    story.feed('table', [15])
    assert.deepEqual(story.all(), ['table@15/15', 'stream@20/15'])
  })

  test('a partition that is taken away is not waited for', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 1 })
    story.feed('stream', [50])
    assert.equal(story.next(), null)
    story.revoke('table')
    assert.deepEqual(story.all(), ['stream@50/50'])
  })

  test('one that comes later holds back what is buffered already', () => {
    const story = new Story().assign('stream', { ...joined, lag: 1 })
    story.feed('stream', [50]).at(5)
    story.assign('table', { ...joined, lag: 1 })
    assert.equal(story.next(), null)
    assert.equal(story.shown('stream').headHeldSinceMs, epoch + 5)
  })

  test('what waits is shown, and since when', () => {
    const story = new Story().assign('stream', { ...joined, lag: 2 }).assign('table', { ...joined, lag: 2 })
    story.feed('table', [10], 1).feed('stream', [5, 50])
    assert.deepEqual(story.all(), ['stream@5/5', 'table@10/10'])
    story.at(20)
    assert.equal(story.shown('stream').headHeldSinceMs, epoch)
    assert.deepEqual(story.watermarks.longestWait(), {
      held: 'stream:0',
      awaited: 'table:0',
      byWriters: false,
      since: 0,
    })
    story.feed('table', [11])
    assert.equal(story.watermarks.longestWait(), undefined)
  })

  test('an aligned partition that waits counts as one that lies behind', () => {
    const aligned = { group: 'g', drift: 100 }
    const story = new Story()
      .assign('stream', { ...joined, ...aligned, lag: 1 })
      .assign('table', { ...joined, lag: 1 })
      .assign('ahead', { ...other, ...aligned, lag: 2 })
    story.feed('stream', [1000]).feed('ahead', [1100, 1101])
    assert.deepEqual(story.all(), ['ahead@1100/-'], 'within the drift')
    assert.deepEqual(story.snapshot().alignmentBinding?.emptyLaggards, ['stream:0'])
    story.feed('table', [900])
    assert.deepEqual(story.all(), ['table@900/900', 'stream@1000/900'])
  })
})

describe('how long a task waits', () => {
  const inputs = (maxTaskIdleMs: number) =>
    new Story({ maxTaskIdleMs }).assign('stream', { ...joined, lag: 1 }).assign('table', { ...joined, lag: 0 })

  test('never, where it is told so, not even for what is there', () => {
    const story = new Story({ maxTaskIdleMs: -1 }).assign('stream', { ...joined, lag: 1 })
    story.assign('table', { ...joined, lag: 7 }).feed('stream', [50])
    assert.deepEqual(story.all(), ['stream@50/-'])
  })

  test('as long as it is told for what may yet come, from when the partition was seen to be empty', () => {
    const story = inputs(100)
    story.feed('stream', [50]).at(10).empty('table')
    assert.equal(story.next(), null)
    assert.equal(story.watermarks.nextDeadline(), 110)
    story.at(109)
    assert.equal(story.next(), null)
    story.at(110)
    assert.deepEqual(story.all(), ['stream@50/-'])
    story.at(500).feed('stream', [60])
    assert.deepEqual(story.all(), ['stream@60/-'], 'not anew for every record')
    story.feed('table', [55]).feed('stream', [70])
    assert.deepEqual(story.all(), ['table@55/55'], 'but anew behind a row')
    story.at(600)
    assert.deepEqual(story.all(), ['stream@70/55'])
  })

  test('a record that comes in time goes first', () => {
    const story = inputs(100)
    story.feed('stream', [50]).empty('table').at(60)
    story.feed('table', [40])
    assert.equal(story.next(), 'table@40/40')
  })

  test('with time in hand the wait for what is known to be there has no end', () => {
    const story = inputs(100)
    story.feed('stream', [50])
    story.watermarks.evidence(story.handle('table'), 3, false, story.now)
    story.at(100_000)
    assert.equal(story.next(), null)
    assert.equal(new Watermarks().nextDeadline(), Number.POSITIVE_INFINITY)
  })
})
