import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { repositoryRoot } from '../groups.ts'
import { sourcesBelow } from './sources.ts'

const rooms = [...new Set(sourcesBelow('src').map((file) => dirname(file.path)))]
  .filter((room) => room !== 'src')
  .sort()
const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

describe('rooms', () => {
  test('say what they are for and what they know nothing of', () => {
    const silent = rooms.filter((room) => {
      const page = join(repositoryRoot, room, 'README.md')
      if (!existsSync(page)) return true
      const text = readFileSync(page, 'utf8')
      return !text.startsWith(`# ${room}\n\n`) || !text.includes('**Knows nothing of** ')
    })
    assert.deepEqual(
      silent.map((room) => `${room}/README.md needs '# ${room}', what it is for, and '**Knows nothing of** …'`),
      [],
    )
  })

  test('name only files that they hold, or by their whole path', () => {
    const broken = rooms.flatMap((room) => {
      const named = [...read(`${room}/README.md`).matchAll(/`([\w./-]+\.ts)`/g)].map((match) => match[1] as string)
      const pathOf = (name: string): string => (name.startsWith('src/') ? name : `${room}/${name}`)
      return named.filter((name) => !existsSync(join(repositoryRoot, pathOf(name)))).map((name) => `${room}: ${name}`)
    })
    assert.deepEqual(broken, [])
  })

  test('are all on the map', () => {
    const map = read('ARCHITECTURE.md')
    const missing = rooms.filter((room) => room.split('/').length === 2 && !map.includes(`](${room})`))
    assert.deepEqual(missing, [], 'give them a row in the map of ARCHITECTURE.md')
  })

  test('and files that the architecture names are there', () => {
    const named = [...read('ARCHITECTURE.md').matchAll(/`(src\/[\w./-]+)`/g)].map((match) => match[1] as string)
    assert.ok(named.length > 10)
    assert.deepEqual(
      named.filter((path) => !existsSync(join(repositoryRoot, path))),
      [],
    )
  })

  test('have a way in: two diagrams first, a page for each reader, a glossary', () => {
    const text = read('ARCHITECTURE.md')
    const headings = [...text.matchAll(/^## (.+)$/gm)].map((match) => match[1] as string)
    assert.ok(text.indexOf('```mermaid') < text.indexOf('## States of a commit'))
    assert.equal([...text.matchAll(/^```mermaid$/gm)].length, 2)
    for (const reader of [
      'If you are about to make your first change',
      'If you debug a standstill',
      'If results differ',
    ])
      assert.ok(headings.includes(reader), reader)
    const glossary = text.slice(text.indexOf('## Glossary'))
    assert.ok([...glossary.matchAll(/^\| [a-z]/gm)].length >= 20)
  })
})
