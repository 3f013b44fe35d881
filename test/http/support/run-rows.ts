import { describe, test } from 'node:test'
import { sections } from '../rows/index.ts'
import type { Row, Subject } from './subject.ts'

/** Runs every row that the subject can be brought into the situation of. */
export function runRows(subject: Subject): void {
  for (const [section, rows] of Object.entries(sections)) {
    describe(`${section}, on ${subject.name}`, { concurrency: subject.isFake ? 4 : 1 }, () => {
      for (const row of rows) runRow(subject, row)
    })
  }
}

export function runsOn(subject: Subject, row: Row): boolean {
  return subject.cannot(row.when ?? {}) === undefined && (row.given === undefined || subject.isFake)
}

function runRow(subject: Subject, row: Row): void {
  if (!runsOn(subject, row)) return
  test(`${row.name} [${row.rules.join(' ')}]`, async () => {
    const instance = await subject.start(row.when ?? {})
    try {
      if (row.given !== undefined && instance.fake !== undefined) row.given(instance.fake)
      await row.check(instance)
    } finally {
      await instance.stop()
    }
  })
}
