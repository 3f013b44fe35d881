/** The form of a scenario file. */
import type { Expr, Json } from './expr.ts'

export interface StoreNode {
  readonly name: string
  readonly type?: 'versioned'
  readonly historyRetentionMs?: number
  readonly retentionMs?: number
}

export interface WindowNode {
  readonly type: 'tumbling' | 'hopping' | 'sliding' | 'session' | 'unlimited'
  readonly size?: number
  readonly advance?: number
  readonly diff?: number
  readonly gap?: number
  readonly grace?: number
  readonly start?: number
}

export interface ProcessorNode {
  readonly type: string
  readonly store?: string
  readonly withinMs?: number
  readonly clock?: 'stream' | 'wall'
  readonly everyMs?: number
  readonly ttlMs?: number
  readonly times?: number
  readonly clear?: boolean
  readonly global?: boolean
  readonly n?: number
}

export interface ScenarioNode {
  readonly id: string
  readonly op: string
  readonly from?: string | readonly string[]
  readonly name?: string
  readonly topic?: string
  readonly topics?: readonly string[]
  readonly pattern?: string
  readonly topicFrom?: Expr
  readonly timestamp?: Expr
  readonly store?: StoreNode
  readonly pred?: Expr
  readonly key?: Expr
  readonly value?: Expr
  readonly list?: Expr
  readonly branches?: ReadonlyArray<{ readonly id: string; readonly pred: Expr; readonly name?: string }>
  readonly default?: { readonly id: string; readonly name?: string }
  readonly processor?: ProcessorNode
  readonly until?: 'windowCloses' | 'timeLimit'
  readonly ms?: number
  readonly maxRecords?: number
  readonly window?: WindowNode | { readonly before: number; readonly after: number; readonly grace?: number }
  readonly emit?: 'onWindowUpdate' | 'onWindowClose'
  /** What keeps rows: when it tells them. */
  readonly tells?: 'on-update' | 'per-commit'
  readonly reduce?: Expr
  readonly init?: Expr
  readonly agg?: Expr
  readonly add?: Expr
  readonly sub?: Expr
  readonly merge?: Expr
  readonly joiner?: Expr
  readonly storeName?: string
  readonly grace?: number
  readonly foreignKey?: Expr
}

export type ScenarioInput =
  | {
      readonly topic: string
      readonly key: string | null
      readonly value: Json
      readonly timestamp: number
      readonly headers?: ReadonlyArray<readonly [string, string]>
    }
  | { readonly advanceWallClockMs: number }

export interface Scenario {
  readonly name: string
  readonly topology: { readonly nodes: readonly ScenarioNode[] }
  readonly input?: readonly ScenarioInput[]
  readonly optimize?: boolean
  readonly describeOnly?: boolean
}

export interface ScenarioOutput {
  readonly step: number
  readonly topic: string
  readonly key: Json
  readonly value: Json
  readonly timestamp: number
  readonly headers?: ReadonlyArray<readonly [string, string]>
}

export interface ScenarioResult {
  readonly name: string
  readonly output?: readonly ScenarioOutput[]
  readonly stores?: Readonly<Record<string, readonly Json[]>>
  readonly describe?: string
  readonly error?: string
}
