/** What the HTTP interface needs of the diagnosis where nobody keeps one: a look at the view, whenever it is asked. */
import type { Clock } from '../base/clock.ts'
import { diagnose, verdictOf } from '../view/diagnosis/diagnose.ts'
import type { Verdict } from '../view/diagnosis/finding.ts'
import { type Around, Look } from '../view/diagnosis/look.ts'
import type { EngineView } from '../view/view.ts'
import type { LicenseSource } from './license-seam.ts'

/** `commit-barrier.interval-ms`, where the configuration is not known. */
const usualIntervalMs = 100

export function licenseNow(license: LicenseSource): ReturnType<Around['license']> {
  const { up, reason } = license.readiness()
  return { status: license.state().status, counts: up, ...(reason !== undefined && { reason }) }
}

export function judgedByView(view: EngineView, license: LicenseSource, clock: Clock): () => Verdict {
  const look = new Look({
    view,
    license: () => licenseNow(license),
    ha: () => null,
    commitIntervalMs: usualIntervalMs,
    earlier: () => [],
    mask: (text) => text,
  })
  return () => {
    const now = clock.now()
    const facts = look.take(now, new Map())
    return verdictOf(facts, diagnose(now, facts), [], now)
  }
}
