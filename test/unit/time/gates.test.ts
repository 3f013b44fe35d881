/** Heads that wait for those who write the topics of their task. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Story } from './story.ts'

const joined = { task: '1_0', lag: 0 }

test('a partition that goes is waited for no longer, and what waits for its writers names one that is left', () => {
  const story = new Story().assign('first', joined).assign('second', joined).assign('third', joined)
  const all = ['first', 'second', 'third'].map((name) => story.handle(name))
  story.watermarks.gate(all, story.handle('second'), story.now)
  story.feed('first', [50])
  assert.equal(story.next(), null)
  assert.equal(story.watermarks.longestWait()?.awaited, 'second:0')
  story.revoke('second')
  assert.equal(story.watermarks.longestWait()?.awaited, 'first:0')
  story.revoke('first')
  assert.equal(story.watermarks.longestWait(), undefined)
})
