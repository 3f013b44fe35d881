/**
 * Runs tests anew whenever something that they import changes: `npm run watch -- test/unit/time`. Takes files and folders; without any
 * the units and the rules of the house.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { filesBelow, repositoryRoot } from '../test/groups.ts'

const named = process.argv.slice(2)
const missing = named.filter((path) => !existsSync(join(repositoryRoot, path)))
if (missing.length > 0) {
  process.stderr.write(`There is no ${missing.join(', ')}; name files or folders of tests.\n`)
  process.exit(2)
}
const places = named.length > 0 ? named : ['test/unit', 'test/tidy']
const files = places.flatMap((path) => (path.endsWith('.ts') ? [path] : filesBelow(path, '.test.ts')))
const args = ['--test', '--watch', '--test-concurrency=2', ...files]
const child = spawn(process.execPath, args, { cwd: repositoryRoot, stdio: 'inherit' })
child.on('exit', (code) => process.exit(code ?? 1))
