/** A process that has as many files open as it may: told as that, not as a wrong configuration or a damaged store. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

const folder = mkdtempSync(join(tmpdir(), 'millrace-files-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const source = (path: string): string => JSON.stringify(join(import.meta.dirname, '..', '..', 'src', path))

/** What a step fails with in a process that has opened all the files that it may, as `code: message`. */
function withoutFiles(imports: string, step: string): string {
  const script = [
    "import { openSync } from 'node:fs'",
    imports,
    // The text of an error is made from modules that are loaded late.
    "void new Error('once').stack",
    'for (;;) try { openSync("/dev/null") } catch { break }',
    'let told = "nothing"',
    `try { ${step} } catch (error) { told = error.code + ": " + error.message }`,
    'process.stdout.write(told)',
  ]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const file = join(folder, 'script.mjs')
  writeFileSync(file, script.join('\n'))
  const limited = ['-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, file]
  return execFileSync('bash', limited, { encoding: 'utf8', env, cwd: folder })
}

const skip = process.platform === 'win32' ? 'there is no limit of open files here' : false

describe('as many files open as there may be', { skip }, () => {
  const says =
    /^TOO_MANY_FILES: .* could not be opened, because this process has as many files open as it may \(EMFILE\)/

  test('is what the state folder cannot be locked for', () => {
    const told = withoutFiles(
      `import { lockStateFolder } from ${source('state/backends/state-lock.ts')}`,
      `lockStateFolder(${JSON.stringify(join(folder, 'state'))}, 'app')`,
    )
    assert.match(told, says)
    assert.ok(told.includes(join(folder, 'state', 'app')), told)
  })

  test('is what a store cannot be opened for, and none is set aside', () => {
    const imports = [
      `import { LmdbEnvironment } from ${source('state/backends/lmdb-environment.ts')}`,
      `import { systemClock as clock } from ${source('base/clock.ts')}`,
      `const folder = ${JSON.stringify(join(folder, 'partition-0'))}`,
      'const asides = []',
      'const onQuarantine = (_, reason) => asides.push(reason)',
      "const options = { folder, applicationId: 'app', partition: 0, mapSize: 1 << 20, maxStores: 2, clock, onQuarantine }",
      'const make = () => new LmdbEnvironment({ ...options, onLost() {}, isAbandoned: () => false })',
      'await make().close()',
    ]
    const step = 'try { make() } finally { if (asides.length > 0) throw new Error("set aside: " + asides) }'
    assert.match(withoutFiles(imports.join('\n'), step), says)
  })

  test('is what a file of the configuration cannot be read for', () => {
    const yaml = join(folder, 'engine.yaml')
    writeFileSync(yaml, 'engine.lanes.count: 2\n')
    const imports = `import { loadConfig } from ${source('config/load.ts')}`
    assert.match(withoutFiles(imports, `loadConfig({ file: ${JSON.stringify(yaml)} })`), says)
    const secret = `loadConfig({ set: ['license.key-file=' + ${JSON.stringify(yaml)}] })`
    assert.match(withoutFiles(imports, secret), says)
  })
})
