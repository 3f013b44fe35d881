/** A diagnosis of an engine that a test plays: nobody else of the process has a say in it. */
import type { VirtualClock } from '../../../src/base/clock.ts'
import { Diagnosis } from '../../../src/view/diagnosis/diagnosis.ts'
import type { FakeEngine } from './fake-engine.ts'

export function diagnosisOf(view: FakeEngine, clock: VirtualClock): Diagnosis {
  return new Diagnosis({
    view,
    clock,
    license: () => ({ status: 'NO_KEY', counts: true }),
    ha: () => null,
    commitIntervalMs: 100,
    earlier: () => [],
    mask: (text) => text,
    log: () => undefined,
  })
}
