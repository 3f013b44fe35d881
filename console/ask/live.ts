/**
 * Answers that are kept up to date: whoever shows one asks for its path, and all who show the same one share a question
 * every two seconds. A page that cannot be seen asks nothing. An answer stays when the next one does not come.
 */
import { useEffect, useState } from 'preact/hooks'
import { ask, Refusal } from './client.ts'

export const askEveryMs = 2000

export interface Kept<T> {
  readonly value: T | undefined
  /** Why there is no newer one. */
  readonly refusal: Refusal | undefined
  /** When the value came. */
  readonly atMs: number | undefined
}

interface Source {
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

export function useAsk<T>(path: string | null, everyMs = askEveryMs): Kept<T> {
  const [, redraw] = useState(0)
  useEffect(() => {
    if (path === null) return
    const source = sourceOf(path, everyMs)
    const end = watch(source.readers, () => redraw((n) => n + 1))
    void refresh(path, source)
    return () => {
      end()
      if (source.readers.size === 0) sources.delete(path)
    }
  }, [path, everyMs])
  const kept = path === null ? undefined : sources.get(path)?.kept
  return (kept ?? nothing) as Kept<T>
}

/** Asks again at once, as after a command. */
export function refreshAll(): void {
  for (const [path, source] of sources) void refresh(path, source)
}

const nothing: Kept<never> = { value: undefined, refusal: undefined, atMs: undefined }

function watch(set: Set<() => void>, reader: () => void): () => void {
  set.add(reader)
  return () => set.delete(reader)
}

function sourceOf(path: string, everyMs: number): Source {
  const known = sources.get(path)
  if (known !== undefined) return known
  const source: Source = { kept: nothing, readers: new Set(), asking: false, everyMs, askedAt: 0 }
  sources.set(path, source)
  return source
}

async function refresh(path: string, source: Source): Promise<void> {
  if (source.asking) return
  source.asking = true
  source.askedAt = Date.now()
  try {
    if (!(await isServed(path))) throw new Refusal(404, 'this process does not serve it')
    const value = await ask(path)
    source.kept = { value, refusal: undefined, atMs: Date.now() }
    heard(true)
  } catch (error) {
    const refusal = error instanceof Refusal ? error : new Refusal(0, String(error))
    source.kept = { ...source.kept, refusal }
    heard(refusal.status !== 0)
    // Whoever comes back may be another process, with other switches.
    if (refusal.status === 0) served = undefined
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
  for (const [path, source] of sources) if (now - source.askedAt >= source.everyMs - 200) void refresh(path, source)
}

setInterval(tick, askEveryMs)
document.addEventListener('visibilitychange', tick)
