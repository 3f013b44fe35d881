/** `node test/strip.ts FOLDER`: the sources that tests load, without their types, for `test/sources.mjs`. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { filesBelow, repositoryRoot } from './groups.ts'

const folder = process.argv[2] as string

for (const path of ['src', 'test', 'conformance'].flatMap((below) => filesBelow(below, '.ts'))) {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  // It may be read at any moment, and is whole then.
  const unfinished = `${file}.part`
  writeFileSync(unfinished, stripTypeScriptTypes(readFileSync(join(repositoryRoot, path), 'utf8')))
  renameSync(unfinished, file)
}
