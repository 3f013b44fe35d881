/** Says whether a tag may be released: `node scripts/release-check.ts v1.2.3`. Exit code 1 with a sentence where it may not. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ReleaseFacts {
  readonly tag: string
  readonly version: string
  readonly changelog: string
  /** Of `create-millrace`, which is released together with the package and asks for its version. */
  readonly createVersion: string
}

/** Why the tag may not be released; undefined where it may. */
export function releaseFault({ tag, version, changelog, createVersion }: ReleaseFacts): string | undefined {
  if (!/^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(tag)) return `The tag ${tag} is no version; name it like v${version}.`
  if (tag !== `v${version}`)
    return `The tag ${tag} is not the version ${version} of package.json; set one to the other.`
  if (createVersion !== version)
    return `packages/create-millrace has the version ${createVersion}, not ${version}; they are released together.`
  const heading = changelog.split('\n').find((line) => line.startsWith(`## [${version}]`))
  if (heading === undefined)
    return `CHANGELOG.md has no heading '## [${version}] - <date>'; move [Unreleased] below it.`
  if (!/ - \d{4}-\d{2}-\d{2}$/.test(heading))
    return `CHANGELOG.md gives ${version} no date; write '## [${version}] - <date>'.`
  return undefined
}

if (import.meta.main) {
  const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8')
  const versionOf = (path: string): string => (JSON.parse(read(path)) as { readonly version: string }).version
  const fault = releaseFault({
    tag: process.argv[2] ?? '',
    version: versionOf('package.json'),
    createVersion: versionOf('packages/create-millrace/package.json'),
    changelog: read('CHANGELOG.md'),
  })
  if (fault !== undefined) {
    process.stderr.write(`${fault}\n`)
    process.exit(1)
  }
}
