import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { importsOf, resolveImport, type SourceFile, sourcesBelow } from './sources.ts'

/** A folder imports from itself and from those before it. */
const order = [
  'base',
  'wire',
  'port',
  'config',
  'serde',
  'state',
  'topology',
  'time',
  'dsl',
  'operators',
  'lanes',
  'broker',
  'view',
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
  engine: 'the read-only `EngineView` and `EngineCommands` of src/view/view.ts, passed in by src/runtime',
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
  { specifier: /^lmdb$/, allowed: ['src/state/backends/lmdb'], instead: 'the store contract in src/state/contract.ts' },
  {
    specifier: /^(node:)?https?2?$/,
    allowed: ['src/http/', 'src/serde/registry/transport.ts'],
    instead: 'a route in src/http for serving, the global `fetch` for calling',
  },
  {
    specifier: /^(avsc|ajv|@bufbuild\/protobuf|@msgpack\/msgpack)(\/|$)/,
    allowed: ['src/serde/registry/', 'src/serde/plain/'],
    instead: 'the serdes of src/serde/registry and src/serde/plain: the packages are optional, and loaded when used',
  },
  {
    specifier: /^@opentelemetry\/api$/,
    allowed: ['src/lanes/telemetry/', 'src/metrics/otel.ts'],
    instead: 'src/lanes/telemetry, which loads it where it is asked for',
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
  { specifier: /^(node:)?inspector/, allowed: ['src/runtime/threads/'], instead: '`EngineView.threads()`' },
]

/** The broker's contract: types alone, known to the lanes too. `src/broker/wire` is known to all as well. */
const portFiles = new Set(['src/broker/port.ts', 'src/broker/feed-marks.ts'])

/** First part of a path below `src/`; the package's entry points count as themselves. */
function areaOf(path: string): string {
  if (portFiles.has(path)) return 'port'
  if (path.startsWith('src/broker/wire/')) return 'wire'
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

  test('files do not import one another in a circle, types included, but for those listed', () => {
    const graph = new Map(
      sources.map((file) => [
        file.path,
        importsOf(file)
          .map((found) => resolveImport(file.path, found.specifier))
          .filter((target) => target !== undefined),
      ]),
    )
    const found = circles(graph)
    assert.deepEqual(
      found,
      allowedCircles.map(({ files }) => [...files]),
      'take a type from where it is declared, or move it below both files; a circle that is one thing by nature is listed',
    )
    assert.ok(allowedCircles.length <= 5 && allowedCircles.every(({ reason }) => reason.length > 40))
  })
})

const allowedCircles: ReadonlyArray<{ readonly reason: string; readonly files: readonly string[] }> = [
  {
    reason:
      'A stream has `toTable`, a table `toStream`, and both group: the fluent classes are one thing in several files.',
    files: ['cogroup', 'grouped-table', 'grouped', 'stream', 'table'].map((name) => `src/dsl/${name}.ts`),
  },
  {
    reason: 'A segment of time has tables, a table says which segment it lies in, and the index by key names both.',
    files: ['segment-table', 'window-keys', 'window-table'].map((name) => `src/state/windows/${name}.ts`),
  },
]

/** The files of each circle, or of circles that share a file: what is strongly connected (Tarjan). */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const numbers = new Map<string, number>()
  const lowest = new Map<string, number>()
  const trail: string[] = []
  const found: string[][] = []
  const walk = (path: string): void => {
    numbers.set(path, numbers.size)
    lowest.set(path, numbers.get(path) as number)
    trail.push(path)
    for (const next of graph.get(path) ?? []) {
      if (!graph.has(next)) continue
      if (!numbers.has(next)) walk(next)
      else if (!trail.includes(next)) continue
      lowest.set(path, Math.min(lowest.get(path) as number, lowest.get(next) as number))
    }
    if (lowest.get(path) !== numbers.get(path)) return
    const circle = trail.splice(trail.indexOf(path))
    if (circle.length > 1) found.push(circle.sort())
  }
  for (const path of graph.keys()) if (!numbers.has(path)) walk(path)
  return found.sort((a, b) => (a[0] as string).localeCompare(b[0] as string))
}
