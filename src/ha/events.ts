/** What happens to a coordinator, and what it wants done. */
import type { HaCommandToEngine, HaFact } from '../engine/ha-contract.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { EngineError } from '../base/errors.ts'
import type { Encoded } from './log/records.ts'

export interface RawRecord {
  readonly offset: number
  readonly key: string
  readonly value: string | null
  /** Epoch milliseconds, by the broker's clock or the writer's. */
  readonly timestamp?: number
}

export type HaEvent =
  /** Read from the coordinator topic, in order, from its beginning. */
  | { readonly type: 'records'; readonly records: readonly RawRecord[] }
  /** The last read reached the topic's end. */
  | { readonly type: 'end-reached' }
  /** Read to the end for the first time. `tagEpoch`: highest token epoch in the commit tags; 0: none. */
  | { readonly type: 'joined'; readonly tagEpoch: number }
  /** The topic is another one now: reading begins anew. */
  | { readonly type: 'topic-recreated'; readonly tagEpoch: number }
  | { readonly type: 'tick' }
  | { readonly type: 'fact'; readonly fact: EngineFact | HaFact }
  | { readonly type: 'pause-intent'; readonly paused: boolean }
  | { readonly type: 'stop' }
  /** The broker has not taken what this pod wrote, or nobody knows. */
  | { readonly type: 'write-failed'; readonly code: string; readonly message: string; readonly refused: boolean }

export type HaEffect =
  /** Written in this order, at most once: what is not read back is decided anew. */
  | { readonly type: 'append'; readonly records: readonly Encoded[] }
  | { readonly type: 'engine'; readonly command: HaCommandToEngine }
  | { readonly type: 'log'; readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly message: string }
  | { readonly type: 'fail'; readonly error: EngineError }
  | { readonly type: 'changed' }
  /** Said goodbye: nothing more comes. */
  | { readonly type: 'ended' }

/** Gathers the effects of one step. */
export class Out {
  effects: HaEffect[] = []

  append(...records: readonly Encoded[]): void {
    if (records.length > 0) this.effects.push({ type: 'append', records })
  }

  engine(command: HaCommandToEngine): void {
    this.effects.push({ type: 'engine', command })
  }

  log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void {
    this.effects.push({ type: 'log', level, message })
  }

  other(effect: HaEffect): void {
    this.effects.push(effect)
  }

  take(): HaEffect[] {
    const { effects } = this
    this.effects = []
    return effects
  }
}
