import { runRows } from './support/run-rows.ts'
import { runtimeSubject } from './support/runtime-subject.ts'

runRows(runtimeSubject())
