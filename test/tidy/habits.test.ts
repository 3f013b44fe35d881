/** The files that a code host reads name things that exist. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { releaseFault } from '../../scripts/release-check.ts'
import { filesBelow, repositoryRoot, testGroups } from '../groups.ts'

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

interface Workflow {
  readonly jobs: Readonly<
    Record<string, { readonly steps: ReadonlyArray<{ readonly run?: string; readonly uses?: string }> }>
  >
}

const workflows = filesBelow('.github/workflows', '.yml')

describe('the habits of the house', () => {
  test('workflows call scripts, files and groups of tests that exist', () => {
    assert.deepEqual(workflows, ['.github/workflows/release.yml', '.github/workflows/test.yml'])
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> }
    const commands = workflows.flatMap((path) =>
      Object.values((parse(read(path)) as Workflow).jobs).flatMap(({ steps }) => steps.map((step) => step.run ?? '')),
    )
    const groups = testGroups.map(({ name }) => name)
    for (const command of commands) {
      for (const [, script = ''] of command.matchAll(/npm run ([\w:]+)/g)) assert.ok(script in scripts, command)
      for (const [, file = ''] of command.matchAll(/node (\S+\.ts)/g))
        assert.ok(existsSync(join(repositoryRoot, file)), command)
      for (const [, group = ''] of command.matchAll(/test\/run\.ts (\S+)/g))
        assert.ok(groups.includes(group) || existsSync(join(repositoryRoot, group)), command)
    }
    assert.ok(commands.includes('.ci/run') && existsSync(join(repositoryRoot, '.ci/run')))
  })

  test('forms for issues can be read', () => {
    for (const path of filesBelow('.github/ISSUE_TEMPLATE', '.yml')) assert.ok(parse(read(path)) !== null, path)
  })

  test('the tests run on the Node.js that the package asks for', () => {
    const { engines } = JSON.parse(read('package.json')) as { readonly engines: { readonly node: string } }
    const least = Number(/\d+/.exec(engines.node)?.[0])
    const [, versions = ''] = /node: \[([^\]]+)\]/.exec(read('.github/workflows/test.yml')) ?? []
    assert.ok(versions.split(', ').map(Number).includes(least))
  })

  test('a release needs a tag, a version and a dated heading that agree', () => {
    const changelog = '# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-11-22\n'
    const facts = { tag: 'v1.2.3', version: '1.2.3', createVersion: '1.2.3', changelog }
    assert.equal(releaseFault(facts), undefined)
    assert.match(releaseFault({ ...facts, tag: '1.2.3' }) ?? '', /is no version/)
    assert.match(releaseFault({ ...facts, version: '1.2.4' }) ?? '', /is not the version 1\.2\.4/)
    const next = { tag: 'v1.3.0', version: '1.3.0', createVersion: '1.3.0' }
    assert.match(releaseFault({ ...next, changelog }) ?? '', /no heading/)
    assert.match(releaseFault({ ...facts, createVersion: '1.2.2' }) ?? '', /create-millrace has the version 1\.2\.2/)
    assert.match(releaseFault({ ...facts, changelog: '## [1.2.3]\n' }) ?? '', /no date/)
  })
})
