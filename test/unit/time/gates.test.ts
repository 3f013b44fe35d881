/** Heads that wait for those who write the topics of their task. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Story } from './story.ts'

const joined = { task: '1_0', lag: 0 }
const nothingWent = (): number => Number.NEGATIVE_INFINITY

test('a partition that goes is waited for no longer, and what waits for its writers names one that is left', () => {
  const story = new Story().assign('first', joined).assign('second', joined).assign('third', joined)
  const all = ['first', 'second', 'third'].map((name) => story.handle(name))
  story.watermarks.gate(all, story.handle('second'), nothingWent, story.now)
  story.feed('first', [50])
  assert.equal(story.next(), null)
  assert.equal(story.watermarks.longestWait()?.awaited, 'second:0')
  story.revoke('second')
  assert.equal(story.watermarks.longestWait()?.awaited, 'first:0')
  story.revoke('first')
  assert.equal(story.watermarks.longestWait(), undefined)
})

test('what is no younger than what went of its partition before the gate was closed does not wait for it', () => {
  const story = new Story().assign('first', joined).assign('second', joined)
  const [first, second] = [story.handle('first'), story.handle('second')]
  story.watermarks.gate([first, second], first, (p) => (p === first ? 50 : nothingWent()), story.now)
  story.feed('first', [20, 60]).feed('second', [30])
  assert.deepEqual(story.all(), ['first@20/20'])
  assert.equal(story.watermarks.longestWait()?.awaited, 'first:0')
})

test('alignment does not wait for a head that waits for those who write: they may be among what alignment holds', () => {
  const group = { group: 'g', drift: 100 }
  const story = new Story({ byTask: true })
    .assign('writer')
    .assign('ahead', group)
    .assign('table', { ...group, ...joined })
    .assign('between', joined)
  const [table, between] = [story.handle('table'), story.handle('between')]
  story.watermarks.gate([table, between], between, nothingWent, story.now)
  story.feed('writer', [500, 20_000]).feed('table', [1000]).feed('ahead', [10_000]).empty('between')
  assert.deepEqual(
    story.all().map((each) => each.split('/')[0]),
    ['writer@500', 'ahead@10000', 'writer@20000'],
  )
  story.watermarks.cameTo(between, { upToMs: 20_000, knownUpToMs: 20_000 }, new Map(), story.now)
  assert.equal(story.next()?.split('/')[0], 'table@1000')
})
