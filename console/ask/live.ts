/**
 * Answers that are kept up to date: whoever shows one asks for its path, and all who show the same one share a question
 * every two seconds. A page that cannot be seen asks nothing. An answer stays when the next one does not come.
 */
import { useEffect, useState } from 'preact/hooks'
import { ask, base, Refusal } from './client.ts'

export const askEveryMs = 2000

export interface Kept<T> {
  readonly value: T | undefined
  /** Why there is no newer one. */
  readonly refusal: Refusal | undefined
  /** When the value came. */
  readonly atMs: number | undefined
}

interface Source {
  readonly path: string
  /** Which process is asked. */
  readonly at: string
  kept: Kept<unknown>
  readonly readers: Set<() => void>
  asking: boolean
  readonly everyMs: number
  askedAt: number
}

const sources = new Map<string, Source>()
const watchers = new Set<() => void>()
let lastAnswerMs: number | undefined
let silentSinceMs: number | undefined

/** Since when nobody answers; undefined while somebody does. */
export function useSilence(): number | undefined {
  const [, redraw] = useState(0)
  useEffect(() => watch(watchers, () => redraw((n) => n + 1)), [])
  return silentSinceMs
}

export function useAsk<T>(path: string | null, everyMs = askEveryMs, at = base): Kept<T> {
  const [, redraw] = useState(0)
  const id = `${at}${path}`
  useEffect(() => {
    if (path === null) return
    const source = sourceOf(id, path, at, everyMs)
    const end = watch(source.readers, () => redraw((n) => n + 1))
    void refresh(source)
    return () => {
      end()
      if (source.readers.size === 0) sources.delete(id)
    }
  }, [path, at, everyMs])
  const kept = path === null ? undefined : sources.get(id)?.kept
  return (kept ?? nothing) as Kept<T>
}

/** Asks again at once, as after a command. */
export function refreshAll(): void {
  for (const source of sources.values()) void refresh(source)
}

const nothing: Kept<never> = { value: undefined, refusal: undefined, atMs: undefined }

function watch(set: Set<() => void>, reader: () => void): () => void {
  set.add(reader)
  return () => set.delete(reader)
}

function sourceOf(id: string, path: string, at: string, everyMs: number): Source {
  const known = sources.get(id)
  if (known !== undefined) return known
  const source: Source = { path, at, kept: nothing, readers: new Set(), asking: false, everyMs, askedAt: 0 }
  sources.set(id, source)
  return source
}

async function refresh(source: Source): Promise<void> {
  const { path, at } = source
  if (source.asking) return
  source.asking = true
  source.askedAt = Date.now()
  try {
    if (at === base && !(await isServed(path))) throw new Refusal(404, 'this process does not serve it')
    const value = await ask(path, 'GET', undefined, at)
    source.kept = { value, refusal: undefined, atMs: Date.now() }
    if (at === base) heard(true)
  } catch (error) {
    const refusal = error instanceof Refusal ? error : new Refusal(0, String(error))
    source.kept = { ...source.kept, refusal }
    if (at === base) heard(refusal.status !== 0)
    // Whoever comes back may be another process, with other switches.
    if (at === base && refusal.status === 0) served = undefined
  } finally {
    source.asking = false
  }
  for (const reader of source.readers) reader()
}

let served: Promise<readonly string[] | undefined> | undefined

/** What is turned off is not asked for: `/info` says what is served. Where that is not known, it is asked for all the same. */
async function isServed(path: string): Promise<boolean> {
  served ??= ask<{ readonly endpoints: readonly string[] }>('/info').then(
    ({ endpoints }) => endpoints,
    () => undefined,
  )
  const known = await served
  if (known === undefined) served = undefined
  return known === undefined || known.includes(path.split('?')[0] ?? path)
}

function heard(isThere: boolean): void {
  const now = Date.now()
  if (isThere) lastAnswerMs = now
  const before = silentSinceMs
  silentSinceMs = isThere ? undefined : (silentSinceMs ?? lastAnswerMs ?? now)
  if (before !== silentSinceMs) for (const watcher of watchers) watcher()
}

function tick(): void {
  if (document.hidden) return
  const now = Date.now()
  // A timer may come a little early: a question is not put off by a whole turn for that.
  for (const source of sources.values()) if (now - source.askedAt >= source.everyMs - 200) void refresh(source)
}

setInterval(tick, askEveryMs)
document.addEventListener('visibilitychange', tick)
