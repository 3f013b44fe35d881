/**
 * Looks for false alarms: `node scripts/false-alarms.ts [minutes]` runs the two demos for that long (60), asks `/why` of
 * every process each three seconds, and prints every finding when it comes and when it goes. The flights are fed for half
 * of the time and the topics are quiet from then on; the pods switch, lose one of them, and go on. Ends with 1 when
 * anything was found that is not so: a standby is one.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WhyAnswer } from '../src/view/diagnosis/answer.ts'

const minutes = Number(process.argv[2] ?? 60)
const everyMs = 3000
const flights = 20_000
const beganAt = Date.now()
const until = beganAt + minutes * 60_000
/** These are true where they come: a pod that waits, follows its changelogs, is told to end. */
const trueHere = new Set(['STANDBY', 'RESTORING', 'STOPPING'])

const open = new Map<string, { readonly sinceMs: number; readonly sentence: string }>()
let asked = 0
let slowestMs = 0
let falseAlarms = 0

function say(text: string): void {
  const seconds = Math.round((Date.now() - beganAt) / 1000)
  process.stdout.write(`${String(seconds).padStart(5)} s  ${text}\n`)
}

async function ask(url: string): Promise<void> {
  const startedAt = performance.now()
  const answer = await fetch(`${url}/why`).then(
    async (response) => (await response.json()) as WhyAnswer,
    () => null,
  )
  if (answer === null) return
  asked++
  slowestMs = Math.max(slowestMs, performance.now() - startedAt)
  const found = new Map(
    answer.findings.map(({ code, place, sentence }) => [`${url} ${code} ${JSON.stringify(place)}`, sentence]),
  )
  for (const [name, sentence] of found) {
    if (open.has(name)) continue
    open.set(name, { sinceMs: Date.now(), sentence })
    const isTrue = trueHere.has(name.split(' ')[1] ?? '')
    if (!isTrue) falseAlarms++
    say(`${isTrue ? 'true ' : 'FALSE'} ${name}: ${sentence}`)
  }
  for (const [name, { sinceMs }] of open) {
    if (!name.startsWith(`${url} `) || found.has(name)) continue
    open.delete(name)
    say(`over  ${name} after ${Math.round((Date.now() - sinceMs) / 1000)} s`)
  }
}

/** Its addresses are those that it prints. */
function run(name: string, args: readonly string[]): { readonly child: ChildProcess; readonly urls: Set<string> } {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const urls = new Set<string>()
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    for (const [, url] of text.matchAll(/(http:\/\/127\.0\.0\.1:\d+)\b/g)) if (url !== undefined) urls.add(url)
    if (name === 'demo:ha') for (const line of text.trimEnd().split('\n')) say(`${name}  ${line.trim()}`)
  })
  child.on('exit', (code) => say(`${name} ended with ${code}`))
  return { child, urls }
}

const rate = Math.max(1, Math.round(flights / (minutes * 30)))
const port = ['--set', 'runtime.http.port=0']
const demos = [
  run('demo', ['src/cli/main.ts', 'demo', '--rate', String(rate), '--stay', ...port]),
  run('demo:ha', ['scripts/demo-ha/run.ts', String(minutes * 20 - 10)]),
]
while (Date.now() < until && demos.some(({ child }) => child.exitCode === null)) {
  for (const { child, urls } of demos) {
    for (const url of urls) if (child.exitCode === null && Date.now() < until) await ask(url)
  }
  await sleep(everyMs)
}
for (const { child } of demos) child.kill('SIGTERM')
say(`asked ${asked} times, slowest ${Math.round(slowestMs)} ms, ${falseAlarms} false alarms`)
process.exitCode = falseAlarms === 0 ? 0 : 1
