/**
 * The hottest functions of each thread of a run. Make the profiles with
 * `node --cpu-prof --cpu-prof-dir=DIR bench/support/embedded-run.ts WORKLOAD`, read them with
 * `node bench/support/profile.ts DIR [COUNT]`. Threads are told apart by what they run.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}

interface Profile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const root = join(import.meta.dirname, '..', '..')
const [folder = '.', count = '10'] = process.argv.slice(2)

function nameOf({ callFrame: { functionName, url, lineNumber } }: ProfileNode): string {
  const name = functionName || '(anonymous)'
  if (!url) return name
  const file = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : url
  return `${name}  ${file}:${lineNumber + 1}`
}

function show(file: string): void {
  const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Profile
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const own = new Map<string, number>()
  let busy = 0
  profile.samples.forEach((id, i) => {
    const name = nameOf(byId.get(id) as ProfileNode)
    if (name === '(idle)' || name === '(program)') return
    const spent = profile.timeDeltas[i] ?? 0
    busy += spent
    own.set(name, (own.get(name) ?? 0) + spent)
  })
  const threads = ['lane-worker', 'engine-worker', 'embedded/host', 'kafka-broker', 'embedded-run']
  const urls = new Set(profile.nodes.map((node) => node.callFrame.url))
  const thread = threads.find((part) => [...urls].some((url) => url.includes(part))) ?? file
  process.stdout.write(`\n${thread}: ${(busy / 1000).toFixed(0)} ms at work\n`)
  const hottest = [...own].sort((a, b) => b[1] - a[1]).slice(0, Number(count))
  for (const [name, spent] of hottest) {
    process.stdout.write(`${((100 * spent) / busy).toFixed(1).padStart(6)} %  ${name}\n`)
  }
}

for (const file of readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))) show(file)
