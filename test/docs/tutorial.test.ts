/** The tutorial, followed to the letter: its files are written, its commands run, and what they print is what it shows. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { repositoryRoot } from '../groups.ts'

const runFile = promisify(execFile)
const page = readFileSync(join(repositoryRoot, 'docs/guide/tutorial.md'), 'utf8')

type Action =
  | { readonly type: 'write'; readonly file: string; readonly text: string }
  | { readonly type: 'run'; readonly command: string; readonly printed: string | undefined }

/** A block is a file where the line above it is a path alone, commands where it is `sh`, and behind those what the last one prints. */
function actionsOf(text: string): Action[] {
  const actions: Action[] = []
  const block = /(?:^`([^`\n]+)`\n)?^```(\w+)\n([\s\S]*?)^```(?:\n```(?:json|text)\n([\s\S]*?)^```)?$/gm
  for (const [, file, language, body = '', printed] of text.matchAll(block)) {
    if (file !== undefined) actions.push({ type: 'write', file, text: body })
    else if (language === 'sh') {
      const commands = body.trim().split('\n')
      for (const [i, command] of commands.entries())
        actions.push({ type: 'run', command, printed: i === commands.length - 1 ? printed : undefined })
    } else throw new Error(`a block of ${language} is no file, no command and no output:\n${body}`)
  }
  return actions
}

/** Partitions are read side by side, and commits take offsets. */
function comparable(printed: string): string[] {
  return printed
    .trim()
    .split('\n')
    .map((line) => line.replace(/"offset":\d+,/, ''))
    .sort()
}

function assertPrinted(printed: string, shown: string, command: string): void {
  const expected = comparable(shown)
  // What is left out of a line that is shown is left out of the one that was printed.
  const actual = comparable(printed).map((line, i) => {
    const [before = '', after] = (expected[i] ?? '').split('…')
    return after !== undefined && line.startsWith(before) && line.endsWith(after) ? `${before}…${after}` : line
  })
  assert.deepEqual(actual, expected, command)
}

describe('the tutorial', () => {
  const home = mkdtempSync(join(tmpdir(), 'millrace-tutorial-'))
  let project = home

  /** What npm would have installed. */
  const install = (folder: string): void => {
    mkdirSync(join(folder, 'node_modules', '@types'), { recursive: true })
    const link = (from: string, name: string): void => symlinkSync(from, join(folder, 'node_modules', name), 'junction')
    link(repositoryRoot, 'millrace')
    link(join(repositoryRoot, 'node_modules', '@types', 'node'), '@types/node')
  }

  const node = async (args: readonly string[]): Promise<string> => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    // Others may use the port that a reader has free.
    const ownPort = { RUNTIME_HTTP_PORT: '0', RUNTIME_HTTP_HOST: '127.0.0.1' }
    const { stdout } = await runFile(process.execPath, args, { cwd: project, env: { ...env, ...ownPort } })
    return stdout
  }

  const command = async (line: string): Promise<string> => {
    const [program = '', ...args] = line.split(' ')
    if (program === 'cd') {
      project = join(project, args[0] ?? '')
      install(project)
      return ''
    }
    const started = [program, args[0], args[1]].join(' ')
    const scripts: Readonly<Record<string, readonly string[]>> = {
      'npm create millrace': [
        join(repositoryRoot, 'packages/create-millrace/create.js'),
        '--no-install',
        ...args.slice(2),
      ],
      'npm test ': ['--test', 'src/**/*.test.ts'],
      'npm run typecheck': [join(repositoryRoot, 'node_modules/typescript/bin/tsc')],
    }
    const script = scripts[started]
    if (script) return await node(script.filter((arg) => arg !== '--'))
    if (program === 'npx' && args[0] === 'millrace')
      return await node([join(repositoryRoot, 'src/cli/main.ts'), ...args.slice(1)])
    assert.equal(program, 'node', line)
    return await node(args)
  }

  const perform = async (action: Action): Promise<void> => {
    if (action.type === 'write') {
      mkdirSync(dirname(join(project, action.file)), { recursive: true })
      writeFileSync(join(project, action.file), action.text)
      return
    }
    const printed = await command(action.command)
    if (action.printed !== undefined) assertPrinted(printed, action.printed, action.command)
  }

  before(() => assert.ok(actionsOf(page).length > 20))
  after(() => rmSync(home, { recursive: true, force: true }))

  // One step builds on the other, so they run in their order, each in what the one before has left.
  for (const [title = '', ...rest] of page
    .split(/^## /m)
    .slice(1)
    .map((step) => step.split('\n'))) {
    const actions = actionsOf(rest.join('\n'))
    if (actions.length === 0) continue
    test(title, async () => {
      for (const action of actions) await perform(action)
      if (project !== home) await command('npm run typecheck')
    })
  }
})
