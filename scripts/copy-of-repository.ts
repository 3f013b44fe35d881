/** A copy of the sources and their tests, below the system's folder for temporary files: to put mistakes into. */
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryRoot } from '../test/groups.ts'

export function copyOfRepository(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  for (const part of [
    'src',
    'test',
    'scripts',
    'conformance',
    'examples',
    'bench',
    'console',
    'package.json',
    'tsconfig.json',
  ])
    cpSync(join(repositoryRoot, part), join(folder, part), { recursive: true })
  symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
