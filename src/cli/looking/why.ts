/** `millrace why`: the verdict of a running application, for people and for scripts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../config/load.ts'
import { type WhyAnswer, answerText } from '../../view/diagnosis/answer.ts'
import { type Status, statuses } from '../../view/diagnosis/finding.ts'
import { exitCodes } from '../exit-codes.ts'
import { outputFault } from '../feed/output.ts'
import { blockedSentence, interfaceUrl, tokenSentence } from '../ha/ha-client.ts'

export interface WhyArguments {
  readonly url?: string
  readonly config?: string
  readonly set: readonly string[]
  readonly json: boolean
  readonly watch: boolean
}

/** Beside those of every command. */
export const whyExitCodes: Readonly<Record<Status | 'SILENT', number>> = {
  FLOWING: 0,
  SLOW: 10,
  STANDING: 11,
  NOT_MEANT_TO_RUN: 12,
  FAILED: 13,
  SILENT: 14,
}

/** It is answered from memory: whoever takes longer does not answer. */
const answerTimeoutMs = 5000
const watchEveryMs = 2000
const widest = 100
const narrowest = 40

type Asked = { readonly answer: WhyAnswer } | { readonly code: number; readonly told: string }

export async function why(args: WhyArguments): Promise<number> {
  const config = loadConfig({
    environment: process.env,
    set: args.set,
    ...(args.config !== undefined && { file: args.config }),
  })
  const url = interfaceUrl(config, args.url)
  const token = config.get('runtime.http.auth.token')
  for (;;) {
    const asked = await ask(url, token)
    if ('answer' in asked) show(asked.answer, args, url)
    else process.stderr.write(`millrace: ${asked.told}\n`)
    // Nobody watches whose reader has gone.
    const isOnce = !args.watch || outputFault() !== undefined
    if (isOnce) return 'answer' in asked ? whyExitCodes[asked.answer.status] : asked.code
    if ('code' in asked && asked.code === exitCodes.usage) return asked.code
    await sleep(watchEveryMs)
  }
}

function show(answer: WhyAnswer, { json, watch }: WhyArguments, url: URL): void {
  if (json) {
    process.stdout.write(`${JSON.stringify(answer)}\n`)
    return
  }
  const isScreen = watch && process.stdout.isTTY
  const width = Math.max(narrowest, Math.min(widest, process.stdout.columns ?? 80))
  const text = answerText(answer, width, url.origin)
  process.stdout.write(isScreen ? `\x1b[H\x1b[2J${text}` : watch ? `${text}\n` : text)
}

async function ask(url: URL, token: string | null): Promise<Asked> {
  const address = new URL(`${url.pathname.replace(/\/$/, '')}/why`, url)
  let response: Response
  let body: unknown
  try {
    response = await fetch(address, {
      headers: { Accept: 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
      signal: AbortSignal.timeout(answerTimeoutMs),
    })
    body = await response.json()
  } catch (error) {
    return { code: whyExitCodes.SILENT, told: blockedSentence(url) ?? silence(url, error) }
  }
  if (response.ok && isAnswer(body)) return { answer: body }
  if (response.status === 401) {
    const how = 'RUNTIME_HTTP_AUTH_TOKEN or --set runtime.http.auth.token-file=<file>'
    return { code: exitCodes.usage, told: tokenSentence(url.origin, token, how) }
  }
  const told = `${url.origin} answers ${response.status} to /why: it is no Millrace, or one that does not know the question yet.`
  return { code: whyExitCodes.SILENT, told }
}

function isAnswer(body: unknown): body is WhyAnswer {
  const { status, findings, flow } = (body ?? {}) as Partial<WhyAnswer>
  return (statuses as readonly unknown[]).includes(status) && Array.isArray(findings) && Array.isArray(flow)
}

/** What it may mean that nobody answers. */
function silence(url: URL, error: unknown): string {
  const { cause, name } = error as { readonly cause?: { readonly code?: unknown }; readonly name?: string }
  const code = typeof cause?.code === 'string' ? cause.code : name
  switch (code) {
    case 'ECONNREFUSED':
      return `${url.origin} does not answer (${code}): no process listens there. It has ended, or has not begun, or runtime.http.enabled is false, or its port is another one (--url).`
    case 'TimeoutError':
      return `${url.origin} does not answer within ${answerTimeoutMs / 1000} s: the machine has no time for it, or the process is stopped (SIGSTOP, a debugger) or out of memory, or a firewall swallows the question.`
    case 'ENOTFOUND':
      return `${url.origin} does not answer (${code}): there is no host of that name; --url names the pod.`
    default:
      return `${url.origin} does not answer (${code ?? 'no reason is known'}): --url names the pod, as in http://localhost:8080.`
  }
}
