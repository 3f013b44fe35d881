import { fakeSubject } from './support/fake-subject.ts'
import { runRows } from './support/run-rows.ts'

runRows(fakeSubject)
