import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesBelow, filesOf, repositoryRoot, testGroups } from '../groups.ts'
import { repositoryFiles } from './sources.ts'

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

describe('the repository', () => {
  test('every test file belongs to exactly one group', () => {
    const grouped = testGroups.flatMap(filesOf)
    assert.equal(new Set(grouped).size, grouped.length, 'a file belongs to two groups of test/groups.ts')
    const places = ['test', 'examples', 'src', 'conformance', 'bench', 'scripts']
    const all = places.flatMap((folder) => filesBelow(folder, '.test.ts'))
    const homeless = all.filter((file) => !grouped.includes(file))
    assert.deepEqual(homeless, [], 'name their folder in test/groups.ts')
  })

  test('the lock file names no registry', () => {
    const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, { resolved?: string }> }
    const resolved = Object.entries(lock.packages).filter(([, entry]) => entry.resolved?.startsWith('http'))
    assert.deepEqual(
      resolved.map(([name]) => name),
      [],
      'keep `omit-lockfile-registry-resolved=true` in .npmrc and install again',
    )
    assert.doesNotMatch(read('.npmrc'), /registry\s*=\s*http/, 'a registry is the business of each machine')
  })

  test('every dependency is imported somewhere, and every import is a dependency', () => {
    const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies }
    const source = filesBelow('src', '.ts').map(read).join('\n')
    const unused = Object.keys(declared).filter((name) => !source.includes(`'${name}`))
    assert.deepEqual(unused, [], 'remove what no code of src imports')
    const foreign = new Set<string>()
    for (const match of source.matchAll(/from '(@[^/']+\/[^/']+|[a-z][^/':]*)(?:\/[^']*)?'/g)) {
      if (!(match[1]! in declared)) foreign.add(match[1] as string)
    }
    assert.deepEqual([...foreign], [], 'declare it in dependencies')
  })

  test('nothing large or built is kept', () => {
    const large = repositoryFiles().filter((path) => statSync(join(repositoryRoot, path)).size > 1_500_000)
    assert.deepEqual(large, [])
    const built = repositoryFiles().filter((path) => /(^|\/)(dist|node_modules)\/|\.(log|tgz|cpuprofile)$/.test(path))
    assert.deepEqual(built, [])
  })

  test('links between documents lead somewhere', () => {
    const broken: string[] = []
    for (const path of repositoryFiles().filter((file) => file.endsWith('.md'))) {
      const text = read(path).replace(/```[\s\S]*?```/g, '')
      for (const match of text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(#[^)]*)?\)/g)) {
        const target = match[1] as string
        if (target === '') continue
        const absolute = join(repositoryRoot, path, '..', target)
        if (statSync(absolute, { throwIfNoEntry: false }) === undefined) broken.push(`${path} -> ${target}`)
      }
    }
    assert.deepEqual(broken, [])
  })
})
