/** Writes every generated document: `node scripts/docs.ts`. Each generator also runs alone. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const generators = readdirSync(import.meta.dirname).filter((name) => /^docs-\w+\.ts$/.test(name))
for (const name of generators.sort()) {
  execFileSync(process.execPath, [join(import.meta.dirname, name)], { stdio: 'inherit' })
}
