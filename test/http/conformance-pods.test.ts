import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sections } from './rows/index.ts'
import { needPods } from './rules.ts'
import { podsSubject } from './support/pods-subject.ts'
import { runRows, runsOn } from './support/run-rows.ts'

const subject = podsSubject()

test('every rule that needs several processes has a row on real pods', () => {
  const rows = Object.values(sections).flat()
  const proved = new Set<string>(rows.filter((row) => runsOn(subject, row)).flatMap((row) => row.rules))
  assert.deepEqual(
    [...needPods].filter((rule) => !proved.has(rule)),
    [],
  )
})

runRows(subject)
