/** The frame of the console: where one is, what is chosen for all pages, and who must sign in first. */
import { type JSX, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ask, base, home, pods, Refusal, setToken, settings, showPod, token } from './ask/client.ts'
import { refreshAll, useAsk, useSilence } from './ask/live.ts'
import type { Info, Why } from './ask/model.ts'
import { CommitsPage } from './pages/commits.tsx'
import { ConfigPage } from './pages/config.tsx'
import { DeadLettersPage } from './pages/dead-letters.tsx'
import { EndpointsPage } from './pages/endpoints.tsx'
import { HaPage } from './pages/ha.tsx'
import { LagPage } from './pages/lag.tsx'
import { LicensePage } from './pages/license.tsx'
import { Overview } from './pages/overview.tsx'
import { StoresPage } from './pages/stores.tsx'
import { ThreadsPage } from './pages/threads.tsx'
import { TimePage } from './pages/time.tsx'
import { TopologyPage } from './pages/topology.tsx'
import { instant, lasting, setZone, zoneOf } from './parts/format.ts'

interface Shown {
  readonly theme: string
  readonly query: URLSearchParams
}

const pages: Readonly<Record<string, { readonly title: string; readonly show: (shown: Shown) => JSX.Element }>> = {
  overview: { title: 'Overview', show: ({ theme }) => <Overview theme={theme} /> },
  topology: { title: 'Topology', show: ({ query }) => <TopologyPage chosenNode={query.get('node')} /> },
  time: { title: 'Time', show: () => <TimePage /> },
  lag: { title: 'Lag and buffers', show: () => <LagPage /> },
  commits: { title: 'Commits', show: () => <CommitsPage /> },
  threads: { title: 'Threads', show: () => <ThreadsPage /> },
  stores: {
    title: 'Stores',
    show: ({ query }) => <StoresPage store={query.get('store')} chosenKey={query.get('key')} />,
  },
  ha: { title: 'High availability', show: () => <HaPage /> },
  config: { title: 'Configuration', show: () => <ConfigPage /> },
  license: { title: 'License', show: () => <LicensePage /> },
  endpoints: { title: 'Endpoints', show: () => <EndpointsPage /> },
  'dead-letters': { title: 'Dead letters', show: () => <DeadLettersPage /> },
}

/** `#/topology?node=count` is a page and what is chosen on it: a link to keep. */
function placeOf(hash: string): { page: string; query: URLSearchParams } {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  return { page: path in pages ? path : 'overview', query: new URLSearchParams(query) }
}

function themeAtFirst(): string {
  const kept = localStorage.getItem('millrace.theme')
  if (kept !== null) return kept
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'
}

function App(): JSX.Element {
  const [place, setPlace] = useState(() => placeOf(location.hash))
  const [theme, setTheme] = useState(themeAtFirst)
  const [zone, setShownZone] = useState(zoneOf)
  useEffect(() => {
    const move = (): void => {
      setPlace(placeOf(location.hash))
      document.querySelector('main')?.focus()
    }
    addEventListener('hashchange', move)
    // The address may have changed between the first drawing and now.
    setPlace(placeOf(location.hash))
    return () => removeEventListener('hashchange', move)
  }, [])
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  const page = pages[place.page] as (typeof pages)[string]
  useEffect(() => {
    document.title = `${page.title} – Millrace`
  }, [page])
  const chooseTheme = (): void => {
    const next = theme === 'dark' ? 'light' : 'dark'
    localStorage.setItem('millrace.theme', next)
    setTheme(next)
  }
  const chooseZone = (): void => {
    const next = zone === 'utc' ? 'local' : 'utc'
    setZone(next)
    setShownZone(next)
  }
  return (
    <>
      <button type="button" class="skip" onClick={toContent}>
        To the content
      </button>
      <Head>
        <button type="button" onClick={chooseZone}>
          {zone === 'utc' ? 'UTC' : 'Local time'}
        </button>
        <button type="button" onClick={chooseTheme}>
          {theme === 'dark' ? 'Dark' : 'Light'}
        </button>
      </Head>
      <nav aria-label="Pages">
        <ul>
          {Object.entries(pages).map(([name, { title }]) => (
            <li key={name}>
              <a href={`#/${name}`} aria-current={name === place.page ? 'page' : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" tabIndex={-1}>
        <h1>{page.title}</h1>
        <div class="panels" key={`${place.page} ${zone}`}>
          {page.show({ theme, query: place.query })}
        </div>
      </main>
    </>
  )
}

function toContent(): void {
  document.querySelector('main')?.focus()
}

function Head({ children }: { children: JSX.Element[] }): JSX.Element {
  const info = useAsk<Info>('/info', 10_000).value
  const why = useAsk<Why>('/why').value
  const silent = useSilence()
  return (
    <header class="head">
      <p class="brand">
        <b>Millrace</b> {info?.app.applicationId ?? ''}
        {base !== home && ` at ${base}, read only`}
      </p>
      <p role="status" class={silent === undefined ? 'status' : 'status stale'}>
        {silent === undefined
          ? (why?.status ?? '')
          : `No answer since ${instant(silent)} (${lasting(Date.now() - silent)} ago): what is shown is from then`}
      </p>
      <p class="tools">
        {children}
        {base !== home && (
          <button type="button" onClick={() => showPod(home)}>
            Back to this process
          </button>
        )}
        {token(home) !== null && (
          <button
            type="button"
            onClick={() => {
              for (const each of [home, ...pods]) setToken(null, each)
              location.reload()
            }}
          >
            Sign out
          </button>
        )}
      </p>
    </header>
  )
}

function SignIn({ done }: { done: () => void }): JSX.Element {
  const [typed, setTyped] = useState('')
  const [fault, setFault] = useState('')
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setToken(typed, home)
    try {
      await ask('/info', 'GET', undefined, home)
      refreshAll()
      done()
    } catch (error) {
      setToken(null, home)
      setFault(error instanceof Refusal && error.status === 401 ? 'This is not the token.' : String(error))
    }
  }
  return (
    <main id="main" class="sign-in">
      <h1>Millrace</h1>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token (<code>runtime.http.auth.token</code>)
          <input
            type="password"
            autocomplete="current-password"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        {fault !== '' && (
          <p class="stale" role="alert">
            {fault}
          </p>
        )}
        <button type="submit" disabled={typed === ''}>
          Sign in
        </button>
      </form>
    </main>
  )
}

function Door(): JSX.Element {
  const [isOpen, setOpen] = useState(!settings.tokenNeeded || token(home) !== null)
  return isOpen ? <App /> : <SignIn done={() => setOpen(true)} />
}

render(<Door />, document.getElementById('app') as HTMLElement)
