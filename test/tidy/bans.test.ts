import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { codeOnly, occurrences, readSource, repositoryFiles, type SourceFile, sourcesBelow } from './sources.ts'

const sources = sourcesBelow('src')
const everything = [...sources, ...['test', 'examples', 'conformance', 'bench', 'scripts'].flatMap(sourcesBelow)]
/** The rules themselves have to spell what they forbid. */
const outsideTidy = everything.filter((file) => !file.path.startsWith('test/tidy/'))

function find(
  files: readonly SourceFile[],
  view: (file: SourceFile) => string,
  pattern: RegExp,
  instead: string,
): string[] {
  return files.flatMap((file) => occurrences(file, view(file), pattern).map((place) => `${place}; instead: ${instead}`))
}

const raw = (file: SourceFile): string => file.text
const code = (file: SourceFile): string => codeOnly(file.text)

/** The text without the lines that a comment explains, on the line itself or on the one before. */
function withoutExplained(file: SourceFile): string {
  const lines = file.text.split('\n')
  const explains = (line: string | undefined): boolean => /\/\/|\*\//.test(line ?? '')
  return lines.map((line, i) => (explains(line) || explains(lines[i - 1]) ? '' : line)).join('\n')
}

interface Ban {
  readonly pattern: RegExp
  readonly instead: string
}

/** Same input, same result: these folders are run by the simulator and by the test driver. */
const pureFolders = [
  'src/topology/',
  'src/time/',
  'src/engine/commit/machine.ts',
  'src/engine/commit/tag.ts',
  'src/dsl/',
  'src/operators/',
  'src/state/',
  'src/broker/embedded/core/',
]
const impureShells = [/^src\/state\/backends\/(lmdb|state-lock)/]

const pureBans: readonly Ban[] = [
  { pattern: /\bDate\.now\b|\bnew Date\(\)/, instead: 'the `Clock` that is passed in (src/base/clock.ts)' },
  { pattern: /\bperformance\.(now|timeOrigin)\b/, instead: '`Clock.monotonic()`' },
  { pattern: /\bMath\.random\b|\brandomUUID\b|\brandomBytes\b/, instead: 'the `Random` that is passed in' },
  {
    pattern: /\b(setTimeout|setInterval|setImmediate)\b/,
    instead: 'a deadline that the caller asks for (`nextDeadline()`, `wakeAt`)',
  },
  { pattern: /\bprocess\.(env|on|exit|hrtime|nextTick|stdout|stderr)\b/, instead: 'a value that is passed in' },
  { pattern: /\bconsole\.\w+/, instead: 'a log function that is passed in' },
]

describe('bans', () => {
  test('pure folders ask neither clock nor chance nor the system', () => {
    const pure = sources.filter(
      (file) =>
        pureFolders.some((folder) => file.path.startsWith(folder)) &&
        !impureShells.some((shell) => shell.test(file.path)),
    )
    assert.ok(pure.length > 0)
    assert.deepEqual(
      pureBans.flatMap((ban) => find(pure, code, ban.pattern, ban.instead)),
      [],
    )
    const io = /^import [^\n]*'node:(fs|net|tls|dgram|dns|child_process|worker_threads|http|timers)[^\n]*/m
    assert.deepEqual(find(pure, raw, io, 'an interface that a shell outside this folder implements'), [])
  })

  test('errors in src carry a code', () => {
    const instead = '`EngineError` with a code of src/base/errors.ts, `BrokerError`, `assert`, or a class of its own'
    assert.deepEqual(find(sources, code, /\bthrow new (Error|TypeError|RangeError)\(/, instead), [])
  })

  test('no caught error vanishes', () => {
    const instead = 'handle it, or say in a comment inside why it may be forgotten'
    assert.deepEqual(find(everything, raw, /catch\s*(\([^)]*\))?\s*\{\s*\}/, instead), [])
    const dropped = /\.catch\(\(\)\s*=>\s*(\{\s*\}|undefined|void 0)\)/
    assert.deepEqual(find(sources, withoutExplained, dropped, instead), [])
  })

  test('nothing is typed away', () => {
    const types = /(:\s*any\b(?!\w))|(\bas any\b)|(<any>)|(\bany\[\])/
    assert.deepEqual(find(outsideTidy, code, types, '`unknown`, or the real type'), [])
    const comments = /@ts-(ignore|nocheck)/
    assert.deepEqual(find(outsideTidy, raw, comments, '`@ts-expect-error` with a reason, in type tests only'), [])
    assert.deepEqual(find(sources, raw, /@ts-expect-error/, 'correct types'), [])
  })

  test('nothing is left for later', () => {
    const notes = /\b(TODO|FIXME|XXX|HACK)\b/
    assert.deepEqual(find(outsideTidy, raw, notes, 'do it now, or leave it out'), [])
  })

  test('properties draw the same cases in every run', () => {
    const tests = outsideTidy.filter(({ path }) => path.startsWith('test/') && path !== 'test/support/properties.ts')
    const imports = /^import (?!type)[^\n]*'fast-check'/m
    assert.deepEqual(find(tests, raw, imports, 'test/support/properties.ts, whose seed is fixed'), [])
  })

  test('syntax that cannot be stripped stays out', () => {
    const syntax = /^\s*(export\s+)?(const\s+)?(enum|namespace)\s+\w+/m
    assert.deepEqual(find(outsideTidy, code, syntax, 'a union of strings, or a module'), [])
  })

  test('exports have names', () => {
    assert.deepEqual(find(sources, code, /^export default\b/m, 'a named export'), [])
    const surface = sources.filter((file) => file.path === 'src/index.ts')
    assert.deepEqual(find(surface, code, /^export \*/m, 'the names, one by one: they are the public surface'), [])
  })

  test('only the command line and the log write to the console', () => {
    const quiet = sources.filter((file) => !file.path.startsWith('src/cli/') && !file.path.startsWith('src/runtime/'))
    assert.deepEqual(find(quiet, code, /\bconsole\.\w+\(|\bprocess\.std(out|err)\b/, 'the log that is passed in'), [])
  })

  test('tests do not leave others out', () => {
    const tests = everything.filter((file) => file.path.endsWith('.test.ts') && !file.path.startsWith('test/tidy/'))
    assert.deepEqual(find(tests, code, /\b(test|it|describe|suite)\.only\b|\bonly:\s*true/, 'run the one file'), [])
  })

  test('file names are in kebab case', () => {
    const odd = everything.map((file) => file.path).filter((path) => !/^[a-z0-9/.-]+$/.test(path))
    assert.deepEqual(odd, [])
  })

  test('no file tells where it was written', () => {
    // Put together from parts, so that this file does not trip over itself.
    const places = ['work', 'root', 'home/\\w+'].map((folder) => `(?<![\\w.@-])/${folder}/`)
    const pattern = new RegExp(places.join('|'))
    const text = repositoryFiles().filter((path) => /\.(ts|md|json|ya?ml|xml|sh)$|^\.|\/run$/.test(path))
    const files = text.filter((path) => path !== 'package-lock.json').map(readSource)
    assert.deepEqual(find(files, raw, pattern, 'a path relative to the repository'), [])
  })
})
