import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { curl } from '../ask/client.ts'
import type { Kept } from '../ask/live.ts'
import { instant } from './format.ts'

interface PanelProps {
  readonly title: string
  /** The endpoint behind it. */
  readonly path?: string
  readonly kept?: Kept<unknown>
  readonly children?: ComponentChildren
  readonly wide?: boolean
  readonly id?: string
}

/** A part of a page, with where it comes from: as curl, as JSON, and since when it is stale. */
export function Panel({ title, path, kept, children, wide, id }: PanelProps): JSX.Element {
  const anchor = id ?? title.toLowerCase().replace(/\W+/g, '-')
  const isBlank = kept !== undefined && kept.value === undefined
  return (
    <section class={wide === true ? 'panel wide' : 'panel'} aria-labelledby={`h-${anchor}`}>
      <header>
        <h2 id={`h-${anchor}`}>{title}</h2>
        {path !== undefined && <PanelTools title={title} path={path} value={kept?.value} />}
      </header>
      {kept !== undefined && <Stale kept={kept} />}
      {isBlank ? <Blank kept={kept} /> : children}
    </section>
  )
}

function PanelTools({ title, path, value }: { title: string; path: string; value: unknown }): JSX.Element {
  return (
    <span class="tools">
      <CopyButton label={`Copy ${title} as curl`} text={curl(path)}>
        curl
      </CopyButton>
      {value !== undefined && (
        <button type="button" aria-label={`Download ${title} as JSON`} onClick={() => download(path, value)}>
          JSON
        </button>
      )}
    </span>
  )
}

export function CopyButton(props: { label: string; text: string; children: ComponentChildren }): JSX.Element {
  const [done, setDone] = useState(false)
  const copy = async (): Promise<void> => {
    await copyText(props.text)
    setDone(true)
    setTimeout(() => setDone(false), 1500)
  }
  return (
    <button type="button" aria-label={props.label} title={props.text} onClick={() => void copy()}>
      {done ? 'copied' : props.children}
    </button>
  )
}

/** Browsers keep their clipboard from pages without TLS, save on the machine itself. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text)
    return
  }
  const area = document.createElement('textarea')
  area.value = text
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

export function download(path: string, value: unknown): void {
  const link = document.createElement('a')
  const blob = new Blob([JSON.stringify(value, undefined, 2)], { type: 'application/json' })
  link.href = URL.createObjectURL(blob)
  link.download = `${path.split('?')[0]?.replace(/^\//, '').replaceAll('/', '-') ?? 'answer'}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 1000)
}

function Stale({ kept }: { kept: Kept<unknown> }): JSX.Element | null {
  if (kept.value === undefined || kept.refusal === undefined) return null
  return (
    <p class="stale" role="status">
      Stale since {instant(kept.atMs)}: {kept.refusal.message}.
    </p>
  )
}

const switches: ReadonlyArray<readonly [RegExp, string]> = [
  [/^\/debug\//, 'runtime.http.debug.enabled'],
  [/^\/ha\//, 'ha.mode'],
  [/^\/config/, 'runtime.endpoints.config.enabled'],
  [/^\/stores\//, 'runtime.endpoints.stores.enabled'],
  [/^\/dead-letters/, 'runtime.endpoints.dead-letters.enabled'],
]

export function switchOf(path: string): string | undefined {
  return switches.find(([pattern]) => pattern.test(path))?.[1]
}

/** Nothing to show is no fault: it says why, and what would change it. */
function Blank({ kept }: { kept: Kept<unknown> }): JSX.Element {
  const { refusal } = kept
  if (refusal === undefined) return <p class="calm">Asking …</p>
  return <p class="calm">{refusal.message}.</p>
}

export function Off({ what, path }: { what: string; path: string }): JSX.Element {
  return (
    <p class="calm">
      {what} <code>{switchOf(path)}</code> turns it on.
    </p>
  )
}
