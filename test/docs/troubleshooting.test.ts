/** What the guide names exists: endpoints, codes, keys of the configuration, metrics. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesBelow, repositoryRoot } from '../groups.ts'

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

const pages = ['troubleshooting', 'tutorial', 'coming-from-kafkajs', 'coming-from-flink', 'concepts', 'shipping'].map(
  (name) => `docs/guide/${name}.md`,
)
/** What looks like a key of the configuration, and is code or a file. */
const code = /^(topology\.(stream|scheduled)|consumer\.(seek|pause)|producer\.send|engine\.yaml)$/

const guide = pages.map(read).join('\n')
const named = (pattern: RegExp): string[] => [...new Set([...guide.matchAll(pattern)].map(([, name = '']) => name))]

describe('the guide names what exists', () => {
  test('codes of errors and of standstills', () => {
    const known = read('docs/errors.md') + read('docs/guide/standstills.md') + read('docs/http.md')
    const codes = named(/`([A-Z]{3,}(?:_[A-Z]+)+)`/g).filter((code) => code !== 'EXACTLY_ONCE')
    assert.ok(codes.length > 20, `${codes.length} codes`)
    assert.deepEqual(
      codes.filter((code) => !known.includes(`\`${code}\``)),
      [],
    )
  })

  test('keys of the configuration', () => {
    const known = read('docs/config.md')
    const sections = [...known.matchAll(/^## ([a-z-]+)$/gm)].map(([, section]) => section)
    const keys = named(/`([a-z]+(?:-[a-z]+)*(?:\.[a-z][a-z-]*)+)(?:: [^`]*)?`/g).filter(
      (key) => sections.includes(key.split('.')[0]) && !code.test(key),
    )
    assert.ok(keys.length > 20, `${keys.length} keys`)
    assert.deepEqual(
      keys.filter((key) => !known.includes(`\`${key}\``)),
      [],
    )
  })

  test('metrics and endpoints', () => {
    const known = read('docs/metrics.md') + read('docs/http.md')
    const names = [...named(/`(engine_[a-z_]+)/g), ...named(/`(?:GET |POST )?(\/(?:debug\/)?[a-z]+(?:\/[a-z]+)?)`/g)]
    const folders = new Set(['/state', '/tmp'])
    assert.deepEqual(
      names.filter((name) => !folders.has(name) && !known.includes(name)),
      [],
    )
  })

  test('what each dependency weighs', () => {
    const { dependencies, peerDependencies } = JSON.parse(read('package.json')) as Readonly<Record<string, object>>
    const [, weights = ''] = read('docs/guide/shipping.md').split('### What it weighs')
    assert.deepEqual(
      Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => !weights.includes(`\`${name}\``)),
      [],
    )
  })

  test('pages that there are, each within reach of the README', () => {
    const readme = read('README.md')
    assert.deepEqual(
      filesBelow('docs/guide', '.md').filter((path) => !readme.includes(`(${path}`)),
      [],
    )
  })
})
