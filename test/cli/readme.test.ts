/** What the README shows is what happens. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { repositoryRoot } from '../groups.ts'
import { millrace } from '../support/millrace.ts'

/** Inside the repository, so that `millrace` resolves as it does for an application. */
const folder = join(repositoryRoot, '.cache', `readme-${process.pid}`)
mkdirSync(folder, { recursive: true })
after(() => rmSync(folder, { recursive: true, force: true }))

const readme = readFileSync(join(repositoryRoot, 'README.md'), 'utf8')

function block(language: string, number = 0): string {
  const found = [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))][number]?.[1]
  return found ?? assert.fail(`the README has no block ${number + 1} of ${language}`)
}

describe('the README', () => {
  test('shows what its application makes of its records', async () => {
    const [, command = ''] = /`npx millrace (run [^`]+)`/.exec(readme) ?? []
    writeFileSync(join(folder, 'app.ts'), block('ts'))
    writeFileSync(join(folder, 'flights.ndjson'), block('json', 0))
    const { code, stdout, stderr } = await millrace([...command.split(' '), '--set', 'runtime.http.enabled=false'], {
      cwd: folder,
    })
    assert.equal(code, 0, stderr)
    // Partitions have no order between them.
    const lines = (text: string): string[] => text.trim().split('\n').sort()
    assert.deepEqual(lines(stdout), lines(block('json', 1)))
  })
})
