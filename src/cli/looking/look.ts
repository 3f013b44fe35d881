/** The verbs that look at a running application, or tell it something, over its HTTP interface. */
import { setTimeout as sleep } from 'node:timers/promises'
import { EngineError } from '../../base/errors.ts'
import { yamlOf } from '../../config/yaml.ts'
import type { FlowReport } from '../../view/flow-rates.ts'
import { exitCodes } from '../exit-codes.ts'
import { outputFault } from '../feed/output.ts'
import { type Answer, ask, type AskArguments, askOwner, type Pod, podsOf } from './ask.ts'
import { pairsText, shortened, tableText } from './table-text.ts'
import { rowsText, text, topText, type ViewedName, type ViewedVerb, viewedVerbs } from './views.ts'
import { whyExitCodes } from './why.ts'

export type Output = 'table' | 'json' | 'yaml'

export interface LookArguments extends AskArguments {
  readonly output: Output
  readonly watch?: boolean
  /** True: for as long as is usual. */
  readonly wait?: number | true
}

export interface RowsArguments extends LookArguments {
  readonly key?: string
  readonly from?: string
  readonly to?: string
  readonly limit: string
}

const watchEveryMs = 2000
const pollMs = 200
/** q, Ctrl-C, Escape. */
const endingKeys = ['q', '\u0003', '\u001b']
const usualWaitSeconds = 60

export function look(verb: ViewedName, args: LookArguments): Promise<number> {
  const { path, show, asText, beside } = viewedVerbs[verb] as ViewedVerb
  return watched(args, async () => {
    if (asText && args.output === 'table') {
      return await each(args, (pod) => ask<string>(pod, path, 'GET', { accept: 'text/plain' }), cut)
    }
    if (beside === undefined || args.output !== 'table') {
      return await each(
        args,
        (pod) => ask<Record<string, unknown>>(pod, path),
        (answer) => show(answer, {}),
      )
    }
    return await each(
      args,
      (pod) => askBoth(pod, path, beside),
      ([answer, more]) => show(answer, more),
    )
  })
}

type Json = Readonly<Record<string, unknown>>

/** What an older process does not serve stays empty. */
async function askBoth(pod: Pod, path: string, beside: string): Promise<Answer<readonly [Json, Json]>> {
  const [answer, more] = await Promise.all([ask<Json>(pod, path), ask<Json>(pod, beside)])
  return answer.ok ? { ok: true, value: [answer.value, more.ok ? more.value : {}] } : answer
}

/** Lines of a page that others made, as wide as the screen. */
function cut(page: string): string {
  return `${page
    .trimEnd()
    .split('\n')
    .map((line) => shortened(line, 80))
    .join('\n')}\n`
}

export function storeRows(store: string, args: RowsArguments): Promise<number> {
  const { key, from, to, limit } = args
  const query = new URLSearchParams({ limit })
  for (const [name, value] of Object.entries({ key, from, to })) if (value !== undefined) query.set(name, value)
  const path = `/stores/${encodeURIComponent(store)}?${query}`
  return watched(args, () => each(args, (pod) => askOwner<Record<string, unknown>>(pod, path), rowsText))
}

interface Status {
  readonly url: string
  readonly state: string
  readonly since: string
  readonly ready: string
  readonly verdict: string
  readonly lag: number | null
}

export async function status(args: LookArguments): Promise<number> {
  if (args.wait !== undefined) await untilState(podsOf(args), 'RUNNING', args.wait)
  return watched(args, async () => {
    const pods = podsOf(args)
    if (pods.length === 1 || args.output !== 'table') {
      return await each(args, statusOf, (one) =>
        pairsText(Object.entries(one).map(([name, value]) => [name, text(value)])),
      )
    }
    const all = await Promise.all(pods.map(async (pod) => ({ pod, answer: await statusOf(pod) })))
    const rows = all.map(({ pod, answer }) =>
      answer.ok ? answer.value : { url: pod.url.origin, state: '-', ready: '-', lag: null, verdict: answer.reason },
    )
    const table = tableText(rows, [
      { name: 'URL', cell: ({ url }) => url },
      { name: 'STATE', cell: ({ state }) => state },
      { name: 'READY', cell: ({ ready }) => ready },
      { name: 'LAG', cell: ({ lag }) => text(lag), right: true },
      { name: 'VERDICT', cell: ({ verdict }) => verdict },
    ])
    process.stdout.write(table)
    return all.every(({ answer }) => answer.ok) ? exitCodes.clean : exitCodes.crash
  })
}

async function statusOf(pod: Pod): Promise<Answer<Status>> {
  const why = await ask<{ verdict: string }>(pod, '/why')
  if (!why.ok) return why
  const state = await ask<{ current: string; since: string }>(pod, '/state')
  if (!state.ok) return state
  const ready = await ask<{ status: string }>(pod, '/health/ready')
  const offsets = await ask<{ totalLag: number }>(pod, '/offsets')
  const value = {
    url: pod.url.origin,
    state: state.value.current,
    since: state.value.since,
    ready: ready.ok ? 'yes' : 'no',
    lag: offsets.ok ? offsets.value.totalLag : null,
    verdict: why.value.verdict,
  }
  return { ok: true, value }
}

interface Told {
  readonly status: string
  readonly state: string
}

/** `pause` and `resume`; with `--wait` the state that is shown is the one that was waited for. */
export function tell(verb: 'pause' | 'resume', args: LookArguments): Promise<number> {
  const path = verb === 'pause' ? '/pause' : '/unpause'
  const wanted = verb === 'pause' ? 'PAUSED' : 'RUNNING'
  return each(
    args,
    async (pod): Promise<Answer<Told>> => {
      const answer = await ask<Told>(pod, path, 'POST')
      // It is the state that refuses, and no switch that is wrong.
      if (!answer.ok) return answer.status === 400 ? { ...answer, status: 409 } : answer
      if (args.wait === undefined) return answer
      const reached = await stateReached(pod, wanted, args.wait)
      return reached.ok ? { ok: true, value: { ...answer.value, state: reached.value } } : reached
    },
    ({ status: said, state }) => `${args.wait === undefined ? `${said}; ` : ''}the state is ${state}\n`,
  )
}

async function untilState(pods: readonly Pod[], wanted: string, wait: number | true): Promise<void> {
  for (const pod of pods) {
    const reached = await stateReached(pod, wanted, wait)
    if (!reached.ok) throw new EngineError(reached.status === 401 ? 'USAGE' : 'COMMAND_REFUSED', reached.reason)
  }
}

/** Asks until the state has come, or the time is up. */
async function stateReached(pod: Pod, wanted: string, wait: number | true): Promise<Answer<string>> {
  const seconds = wait === true ? usualWaitSeconds : wait
  const endMs = performance.now() + seconds * 1000
  for (;;) {
    const state = await ask<{ current: string }>(pod, '/state')
    if (state.ok && state.value.current === wanted) return { ok: true, value: wanted }
    if (!state.ok && state.status === 401) return state
    if (performance.now() > endMs) {
      const seen = state.ok
        ? `the state is ${state.value.current}; 'millrace why' says what it waits for.`
        : state.reason
      return { ok: false, status: 409, reason: `Waited ${seconds} s for ${pod.url.origin} to be ${wanted}: ${seen}` }
    }
    await sleep(pollMs)
  }
}

/** A live screen on a terminal; elsewhere what it shows now. */
export async function top(args: LookArguments): Promise<number> {
  const [pod] = podsOf(args)
  const isScreen = process.stdout.isTTY === true
  const quit = isScreen ? onQuit() : undefined
  try {
    if (isScreen) process.stdout.write('\x1b[?1049h\x1b[?25l')
    for (;;) {
      const { page, code } = await topPage(pod as Pod)
      if (!isScreen) {
        if (code === exitCodes.clean) process.stdout.write(page)
        else process.stderr.write(`millrace: ${page}`)
        return code
      }
      const lines = page.split('\n').map((line) => line.slice(0, process.stdout.columns))
      process.stdout.write(`\x1b[H\x1b[2J${lines.slice(0, process.stdout.rows - 1).join('\n')}\nq ends`)
      if (await Promise.race([quit?.pressed, sleep(watchEveryMs, false)])) return exitCodes.clean
    }
  } finally {
    if (isScreen) process.stdout.write('\x1b[?25h\x1b[?1049l')
    quit?.release()
  }
}

async function topPage(pod: Pod): Promise<{ page: string; code: number }> {
  const flow = await ask<FlowReport>(pod, '/flow')
  if (!flow.ok) return { page: `${flow.reason}\n`, code: refused(flow.status) }
  const [state, offsets, watermarks] = await Promise.all([
    ask<{ current: string }>(pod, '/state'),
    ask<{ totalLag: number }>(pod, '/offsets'),
    ask<{ globalIso: string | null }>(pod, '/watermarks'),
  ])
  const page = topText(
    flow.value,
    state.ok ? state.value.current : '-',
    offsets.ok ? offsets.value.totalLag : null,
    watermarks.ok ? watermarks.value.globalIso : null,
  )
  return { page, code: exitCodes.clean }
}

function onQuit(): { readonly pressed: Promise<true>; release(): void } {
  const { stdin } = process
  const { promise, resolve } = Promise.withResolvers<true>()
  const listen = (keys: Buffer): void => {
    if (endingKeys.some((key) => keys.includes(key))) resolve(true)
  }
  stdin.setRawMode?.(true)
  stdin.on('data', listen)
  stdin.resume()
  return {
    pressed: promise,
    release: () => {
      stdin.off('data', listen)
      stdin.setRawMode?.(false)
      stdin.pause()
    },
  }
}

async function watched(args: LookArguments, once: () => Promise<number>): Promise<number> {
  for (;;) {
    if (args.watch === true && process.stdout.isTTY && args.output === 'table') process.stdout.write('\x1b[H\x1b[2J')
    const code = await once()
    // Nobody watches whose reader has gone.
    if (args.watch !== true || code === exitCodes.usage || outputFault() !== undefined) return code
    await sleep(watchEveryMs)
  }
}

/** Asks every pod that is named. One answer stands for itself; several stand below their addresses. */
export async function each<T>(
  args: LookArguments,
  question: (pod: Pod) => Promise<Answer<T>>,
  show: (value: T) => string,
): Promise<number> {
  const pods = podsOf(args)
  const answers = await Promise.all(pods.map(async (pod) => ({ url: pod.url.origin, answer: await question(pod) })))
  let code: number = exitCodes.clean
  const values: unknown[] = []
  for (const { url, answer } of answers) {
    if (!answer.ok) {
      process.stderr.write(`millrace: ${answer.reason}\n`)
      code = Math.max(code, refused(answer.status))
      continue
    }
    values.push(pods.length === 1 ? answer.value : { url, answer: answer.value })
    if (args.output === 'table') process.stdout.write((pods.length === 1 ? '' : `${url}\n`) + show(answer.value))
  }
  if (args.output !== 'table' && values.length > 0) print(pods.length === 1 ? values[0] : values, args.output)
  return code
}

function print(value: unknown, output: Output): void {
  process.stdout.write(output === 'json' ? `${JSON.stringify(value)}\n` : yamlOf(value))
}

/** 2 where the caller has to correct something, 14 where nobody answers, 1 where it is refused as things are. */
function refused(status: number): number {
  if (status === 0) return whyExitCodes.SILENT
  return status === 400 || status === 401 || status === 404 ? exitCodes.usage : exitCodes.crash
}
