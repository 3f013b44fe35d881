import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { base, home, pods, setToken, showPod } from '../ask/client.ts'
import { refreshAll, useAsk } from '../ask/live.ts'
import type { Consumer, Offsets, Why } from '../ask/model.ts'
import { lasting, number } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'

/** The processes of `runtime.http.console.pods`, side by side; nothing where none are configured. */
export function Pods(): JSX.Element | null {
  if (pods.length === 0) return null
  return (
    <Panel title="Pods" wide>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="scroll" tabIndex={0} aria-label="Pods, table">
        <table>
          <caption class="away">Pods</caption>
          <thead>
            <tr>
              <th scope="col">Pod</th>
              <th scope="col">Status</th>
              <th scope="col">Verdict</th>
              <th scope="col" class="right">
                Lag
              </th>
              <th scope="col" class="right">
                Last commit
              </th>
              <th scope="col">Pages</th>
            </tr>
          </thead>
          <tbody>
            {[home, ...pods].map((at) => (
              <Pod key={at} at={at} />
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  )
}

function Pod({ at }: { at: string }): JSX.Element {
  const why = useAsk<Why>('/why', undefined, at)
  const offsets = useAsk<Offsets>('/offsets', undefined, at).value
  const consumer = useAsk<Consumer>('/consumer', undefined, at).value
  const { value, refusal } = why
  const committedMs = consumer?.lastCommitMs ?? null
  return (
    <tr>
      <td>{at === home ? `${at} (this one)` : at}</td>
      <td>
        {refusal === undefined ? (value?.status ?? 'Asking …') : refusal.status === 0 ? 'SILENT' : refusal.status}
      </td>
      <td>{refusal === undefined ? value?.verdict : refusal.status === 401 ? <Key at={at} /> : refusal.message}</td>
      <td class="right">{number(offsets?.totalLag)}</td>
      <td class="right">{committedMs === null ? '–' : `${lasting(Math.max(0, Date.now() - committedMs))} ago`}</td>
      <td>
        {at === base ? (
          'shown'
        ) : (
          <button type="button" aria-label={`Show ${at}`} disabled={value === undefined} onClick={() => showPod(at)}>
            Show
          </button>
        )}
      </td>
    </tr>
  )
}

/** Each process may have a token of its own. */
function Key({ at }: { at: string }): JSX.Element {
  const [typed, setTyped] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    setToken(typed, at)
    refreshAll()
  }
  return (
    <form class="actions" onSubmit={submit}>
      <input
        type="password"
        aria-label={`Token of ${at}`}
        autocomplete="off"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <button type="submit" disabled={typed === ''}>
        Sign in
      </button>
    </form>
  )
}
