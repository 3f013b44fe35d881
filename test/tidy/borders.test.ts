import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { importsOf, resolveImport, type SourceFile, sourcesBelow } from './sources.ts'

/** A folder imports from itself and from those before it. */
const order = [
  'base',
  'wire',
  'errors.ts',
  'port',
  'config',
  'serde',
  'state',
  'topology',
  'time',
  'dsl',
  'operators',
  'commit',
  'lanes',
  'broker',
  'engine',
  'ha',
  'license',
  'metrics',
  'http',
  'runtime',
  'cli',
] as const

/** What to use where a border forbids an import. */
const replacements: Readonly<Record<string, string>> = {
  engine: 'the read-only `EngineView` and `EngineCommands` of src/engine/view.ts, passed in by src/runtime',
  runtime: 'a seam of your own that src/runtime fills (src/runtime/contract.ts shows the types)',
  cli: 'nothing: the command line is outermost',
  broker: 'a function passed in by src/engine',
  http: 'a plain value or function that src/runtime hands to src/http',
  testing: 'nothing: the test kit is for tests and applications',
}

interface SoleImporter {
  readonly specifier: RegExp
  readonly allowed: readonly string[]
  readonly instead: string
}

const soleImporters: readonly SoleImporter[] = [
  { specifier: /^@platformatic\/kafka/, allowed: ['src/broker/kafka/'], instead: 'the port in src/broker/port.ts' },
  { specifier: /^lmdb$/, allowed: ['src/state/lmdb'], instead: 'the store contract in src/state/contract.ts' },
  {
    specifier: /^(node:)?https?2?$/,
    allowed: ['src/http/'],
    instead: 'a route in src/http for serving, the global `fetch` for calling',
  },
  { specifier: /^jose$/, allowed: ['src/license/'], instead: 'the license state that src/license gives' },
  { specifier: /^yaml$/, allowed: ['src/config/', 'src/http/'], instead: 'src/config, which reads and renders YAML' },
  { specifier: /^croner$/, allowed: ['src/time/'], instead: 'src/time/schedule.ts' },
  { specifier: /^negotiator$/, allowed: ['src/http/'], instead: 'the negotiation in src/http' },
  { specifier: /^commander$/, allowed: ['src/cli/'], instead: 'options of `startRuntime`' },
  { specifier: /^@prometheus-io\/client/, allowed: ['src/metrics/'], instead: 'counters of src/base/counters.ts' },
  {
    specifier: /^(node:)?worker_threads$/,
    allowed: ['src/lanes/', 'src/engine/', 'src/broker/', 'src/runtime/'],
    instead: 'a message port passed in by src/runtime',
  },
  { specifier: /^(node:)?inspector/, allowed: ['src/engine/'], instead: '`EngineView.threads()`' },
]

/** The broker's contract: types alone, known to the lanes too. */
const portFiles = new Set(['src/broker/port.ts', 'src/broker/feed-marks.ts'])

/** First part of a path below `src/`; the package's entry points count as themselves. */
function areaOf(path: string): string {
  if (portFiles.has(path)) return 'port'
  return path.split('/')[1] as string
}

const publicEntries = new Set(['index.ts'])
const sources: readonly SourceFile[] = sourcesBelow('src')

describe('imports between folders', () => {
  test('the scanner finds the sources', () => {
    assert.ok(sources.length > 20, `found only ${sources.length} files below src`)
  })

  test('every folder of src has its place in the order', () => {
    const known = new Set<string>([...order, 'testing', ...publicEntries])
    const strangers = sources.map((file) => areaOf(file.path)).filter((area) => !known.has(area))
    assert.deepEqual([...new Set(strangers)], [], 'add the folder to the order in test/tidy/borders.test.ts')
  })

  test('a folder imports only from itself and from folders before it', () => {
    const broken: string[] = []
    for (const file of sources) {
      const area = areaOf(file.path)
      if (area === 'testing' || publicEntries.has(area)) continue
      const rank = order.indexOf(area as (typeof order)[number])
      for (const { specifier, line } of importsOf(file)) {
        const target = resolveImport(file.path, specifier)
        if (target === undefined || !target.startsWith('src/')) continue
        const targetArea = areaOf(target)
        if (targetArea === area) continue
        const targetRank = order.indexOf(targetArea as (typeof order)[number])
        if (targetRank >= 0 && targetRank < rank) continue
        const instead = replacements[targetArea] ?? `move what both need to a folder before '${area}'`
        broken.push(`${file.path}:${line} imports ${target}; instead: ${instead}`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('nothing in src imports from outside src', () => {
    const broken: string[] = []
    for (const file of sources) {
      for (const { specifier, line } of importsOf(file)) {
        const target = resolveImport(file.path, specifier)
        if (target === undefined || target.startsWith('src/') || target === 'package.json') continue
        broken.push(`${file.path}:${line} imports ${target}; instead: move it into src`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('nothing in src imports the package by its own name', () => {
    const broken: string[] = []
    for (const file of sources) {
      for (const { specifier, line } of importsOf(file)) {
        if (/^millrace(\/|$)/.test(specifier)) broken.push(`${file.path}:${line} imports ${specifier}; use a path`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('each library has its sole importer', () => {
    const broken: string[] = []
    for (const file of sources) {
      for (const { specifier, line } of importsOf(file)) {
        const rule = soleImporters.find((candidate) => candidate.specifier.test(specifier))
        if (!rule || rule.allowed.some((prefix) => file.path.startsWith(prefix))) continue
        broken.push(`${file.path}:${line} imports ${specifier}; instead: ${rule.instead}`)
      }
    }
    assert.deepEqual(broken, [])
  })

  test('modules do not import one another in a circle', () => {
    const graph = new Map<string, string[]>()
    // A stream has `toTable`, a table `toStream`: the fluent classes are one thing in several files, used only when called.
    for (const file of sources.filter((candidate) => !candidate.path.startsWith('src/dsl/'))) {
      const targets = importsOf(file)
        .filter((found) => !found.typeOnly)
        .map((found) => resolveImport(file.path, found.specifier))
      graph.set(
        file.path,
        targets.filter((target) => target !== undefined),
      )
    }
    assert.deepEqual(circles(graph), [])
  })
})

/** One line for every circle found on a depth-first walk. */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>()
  const found: string[] = []
  const walk = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path)
    if (at >= 0) {
      found.push([...trail.slice(at), path].join(' -> '))
      return
    }
    if (done.has(path)) return
    for (const next of graph.get(path) ?? []) walk(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) walk(path, [])
  return found
}
