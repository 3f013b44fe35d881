import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { curl } from '../ask/client.ts'
import { useAsk } from '../ask/live.ts'
import type { OpenApi } from '../ask/model.ts'
import { CopyButton, Panel } from '../parts/panel.tsx'

const podsKey = 'millrace.pods'

export function EndpointsPage(): JSX.Element {
  const description = useAsk<OpenApi>('/openapi.json', 60_000)
  const endpoints = Object.entries(description.value?.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, about]) => ({ path, method: method.toUpperCase(), ...about })),
  )
  return (
    <>
      <Panel title="Endpoints" path="/openapi.json" kept={description} wide>
        {endpoints.map(({ path, method, summary, description: doc, parameters = [] }) => (
          <details key={`${method} ${path}`}>
            <summary>
              <b>{method}</b> <code>{path}</code> {summary}
            </summary>
            <p>{doc}</p>
            {parameters.length > 0 && (
              <ul>
                {parameters.map(({ name, description: meaning, required }) => (
                  <li key={name}>
                    <code>{name}</code>
                    {required ? ' (required)' : ''}: {meaning}
                  </li>
                ))}
              </ul>
            )}
            <p class="actions">
              <code class="curl">{curl(path, method)}</code>
              <CopyButton label={`Copy ${method} ${path} as curl`} text={curl(path, method)}>
                curl
              </CopyButton>
            </p>
          </details>
        ))}
      </Panel>
      <Pods />
    </>
  )
}

/** Each pod serves its own console: a page asks nobody but the process that it came from. */
function Pods(): JSX.Element {
  const [pods, setPods] = useState<readonly string[]>(() =>
    (localStorage.getItem(podsKey) ?? '').split(' ').filter(Boolean),
  )
  const [address, setAddress] = useState('')
  const keep = (next: readonly string[]): void => {
    localStorage.setItem(podsKey, next.join(' '))
    setPods(next)
  }
  const add = (event: Event): void => {
    event.preventDefault()
    const url = URL.parse(/^https?:\/\//.test(address) ? address : `http://${address}`)
    if (url === null) return
    keep([...new Set([...pods, url.origin])])
    setAddress('')
  }
  return (
    <Panel title="Other pods">
      <ul>
        {pods.map((pod) => (
          <li key={pod}>
            <a href={`${pod}/console/${location.hash}`}>{pod}</a>{' '}
            <button
              type="button"
              aria-label={`Forget ${pod}`}
              onClick={() => keep(pods.filter((each) => each !== pod))}
            >
              forget
            </button>
          </li>
        ))}
      </ul>
      <form class="actions" onSubmit={add}>
        <label>
          Address{' '}
          <input value={address} placeholder="pod-b:8080" onInput={(event) => setAddress(event.currentTarget.value)} />
        </label>
        <button type="submit">Add</button>
      </form>
      <p class="calm">Each opens the console of that pod, on the same page. The list stays in this browser.</p>
    </Panel>
  )
}
