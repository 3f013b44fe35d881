import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { repositoryRoot } from '../groups.ts'
import { type SourceFile, sourcesBelow } from './sources.ts'

const aimedAt = 300
const limit = { src: 450, elsewhere: 600 }
const longestLine = 120
const mostEntries = 20

const files = ['src', 'test', 'examples', 'conformance', 'bench', 'scripts'].flatMap(sourcesBelow)

function lines(file: SourceFile): string[] {
  return file.text.replace(/\n$/, '').split('\n')
}

describe('sizes', () => {
  test('no file of src is longer than 450 lines, and no other than 600', (t) => {
    const long = files.filter((file) => lines(file).length > aimedAt)
    for (const file of long) t.diagnostic(`${file.path} has ${lines(file).length} lines; aim at ${aimedAt} at most`)
    const tooLong = long.filter(
      (file) => lines(file).length > (file.path.startsWith('src/') ? limit.src : limit.elsewhere),
    )
    assert.deepEqual(
      tooLong.map((file) => `${file.path} has ${lines(file).length} lines; split it by what changes together`),
      [],
    )
  })

  test('no folder of src shows more than 20 entries', () => {
    const folders = new Set(['src', ...sourcesBelow('src').map((file) => dirname(file.path))])
    const crowded = [...folders].flatMap((folder) => {
      const entries = readdirSync(join(repositoryRoot, folder)).length
      return entries > mostEntries ? [`${folder} has ${entries} entries; give what belongs together a folder`] : []
    })
    assert.deepEqual(crowded, [])
  })

  test('no line of code is longer than 120 characters', () => {
    const tooLong: string[] = []
    for (const file of files.filter((candidate) => candidate.path.startsWith('src/'))) {
      lines(file).forEach((line, index) => {
        // Prose in a documentation comment is left to its writer, and a text that cannot be broken to the formatter.
        const excused = /^\s*(\*|\/\/|\/\*)/.test(line) || /['"`]/.test(line) || /\/.+\//.test(line)
        if (line.length > longestLine && !excused) tooLong.push(`${file.path}:${index + 1}`)
      })
    }
    assert.deepEqual(tooLong, [])
  })

  test('no function of src is longer than 70 lines', () => {
    const tooLong = files
      .filter((file) => file.path.startsWith('src/'))
      .flatMap((file) => longFunctions(file).map((found) => `${file.path}:${found.line} (${found.length} lines)`))
    assert.deepEqual(tooLong, [], 'split it: a function fits on one screen')
  })
})

/**
 * Functions by their layout: the formatter puts the closing brace in the column of the line that opened it. Methods and
 * declarations are what counts; a class body, a table or a type is no function.
 */
function longFunctions(file: SourceFile): Array<{ line: number; length: number }> {
  const text = lines(file)
  const found: Array<{ line: number; length: number }> = []
  const opens =
    /^(\s*)(?:export )?(?:async )?(?:function\b|(?:static |override |get |set |async |\*)*[#\w]+(?:<.*>)?\()/
  const control = /^\s*(if|for|while|switch|return|throw|await|super|catch|do|else)\b/
  for (let i = 0; i < text.length; i++) {
    const head = opens.exec(text[i] as string)
    if (!head || control.test(text[i] as string)) continue
    const indent = head[1] as string
    const opening = bodyStart(text, i, indent)
    if (opening < 0) continue
    let end = opening + 1
    while (end < text.length && text[end] !== `${indent}}`) end++
    const length = end - i + 1
    if (end < text.length && length > 70) found.push({ line: i + 1, length })
  }
  return found
}

/** Line on which the body's brace opens: the first one, or the line that closes a broken parameter list. */
function bodyStart(text: readonly string[], at: number, indent: string): number {
  const first = text[at] as string
  if (/\{$/.test(first) && /\)(:.*)? \{$/.test(first)) return at
  if (!/[(<]$/.test(first)) return -1
  for (let i = at + 1; i < Math.min(at + 30, text.length); i++) {
    const line = text[i] as string
    if (line.startsWith(`${indent})`)) return /\{$/.test(line) ? i : -1
  }
  return -1
}
