import type { JSX } from 'preact'
import { percent } from './format.ts'

interface Shares {
  readonly busy: number
  readonly idle: number
  readonly held: number
  readonly waiting: number
}

const kinds = ['busy', 'waiting', 'held', 'idle'] as const

/** How something spends its time, as a bar. The words beside it say the same. */
export function ShareBar(shares: Shares): JSX.Element {
  let at = 0
  return (
    <svg class="shares" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      {kinds.map((kind) => {
        const x = at
        at += shares[kind] * 100
        return <rect key={kind} class={kind} x={x} y={0} width={shares[kind] * 100} height={8} />
      })}
    </svg>
  )
}

export function shareWords(shares: Shares): string {
  const words = kinds.filter((kind) => shares[kind] >= 0.005).map((kind) => `${kind} ${percent(shares[kind])}`)
  return words.join(', ') || 'not known yet'
}

export function ShareLegend(): JSX.Element {
  return (
    <p class="legend">
      {kinds.map((kind) => (
        <span key={kind}>
          <svg viewBox="0 0 8 8" width="10" height="10" aria-hidden="true">
            <rect class={kind} width={8} height={8} />
          </svg>{' '}
          {kind}
        </span>
      ))}
    </p>
  )
}
