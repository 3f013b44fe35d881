/** What the rows of the conformance suite are run against: a fake engine, or the running one. */
import type { LifecycleState } from '../../../src/view/view.ts'
import type { HaStatus } from '../../../src/http/ha-seam.ts'
import type { HttpConfig } from '../../../src/http/http-config.ts'
import type { LicenseState } from '../../../src/http/license-seam.ts'
import type { Answer, Ask } from './client.ts'
import type { FakeEngine } from './fake-engine.ts'
import type { RuleId } from '../rules.ts'

export interface Situation {
  /** Default RUNNING. `UNINITIALIZED`: the server is up, the application not yet loaded. */
  readonly state?: LifecycleState | 'UNINITIALIZED'
  readonly config?: Partial<HttpConfig>
  readonly ha?: HaStatus
  readonly license?: LicenseState & { readonly up: boolean }
  readonly schemaRegistry?: 'up' | 'down'
}

export interface Instance {
  readonly url: string
  ask(ask: Ask): Promise<Answer>
  /** The fake behind it, undefined where the engine is real. */
  readonly fake: FakeEngine | undefined
  /** Lines logged so far. */
  readonly log: readonly string[]
  /** HA commands published so far. */
  readonly published: readonly unknown[]
  stop(): Promise<void>
}

export interface Subject {
  readonly name: string
  /** Snapshots can be set, and each row has an instance of its own. */
  readonly isFake: boolean
  /** Why a situation cannot be brought about, undefined where it can. */
  cannot(situation: Situation): string | undefined
  start(situation: Situation): Promise<Instance>
}

/** One thing that must hold, through a real socket. */
export interface Row {
  /** Rules of `rules.ts` that this row checks. */
  readonly rules: readonly RuleId[]
  readonly name: string
  readonly when?: Situation
  /** Sets snapshots beforehand: such a row needs the fake. */
  readonly given?: (engine: FakeEngine) => void
  readonly check: (instance: Instance) => Promise<void>
}
