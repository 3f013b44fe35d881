import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { repositoryRoot } from '../groups.ts'
import { lineAt, repositoryFiles, sourcesBelow } from './sources.ts'

/** One word for one thing, the field's where it has one: those on the left are retired. */
const retired: ReadonlyArray<readonly [word: RegExp, instead: string]> = [
  [/\bSlot(?:Table|Rows|Columns|Front|Generation)\b/, 'CellTable, KeyValueRows, KeyValueBuffer, SealedEpoch'],
  [/\b(?:FrontRows|FrontSlots|FrontWindows|WindowFront|NodeFront)\b/, 'WriteBuffer'],
  [/\bWindowPlace\b/, 'SegmentTable'],
  [/\bWindowsBelow\b/, 'PersistedSegments'],
  [/\b(?:LookAhead|RowsAhead|rowsAhead|areFar)\b|look-ahead\.ts/, 'Prefetch, RowPrefetch, isCacheCold'],
  [/\bneverTold\b/, 'unpublished'],
  [/\w*[bB]riefly\b/, 'transient: bytes that are valid until the next call'],
  [/\bCrowding\b|crowding\.ts/, 'Backpressure; a lane is overloaded'],
  [/\bCommitPace\b|commit-pace/, 'CommitTimer'],
  [/\bjudgedBy\b/, 'recordWatermark'],
  [/\bisForgetting\b|\baskToForget\b/, 'hasExpired, requestExpiry'],
  [/\bsinceMark\b|'(?:hand-)?mark'|\bhand-mark\b/, 'barrier'],
  [/\bbeside-pods\b/, 'mixed-mode-guard'],
  [/\bgoOn\b/, 'resume'],
  [/\bbr(?:ing|ings|ought) (?:\w+ )?rows near\b|\bbrought near\b/, 'prefetched'],
]
/** In `src/state` a slot is a cell; elsewhere the word has other uses. */
const ofState: RegExp = /[sS]lots?\b/

const documents = repositoryFiles().filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md')
const texts = [
  ...['src', 'test', 'bench', 'conformance', 'scripts'].flatMap(sourcesBelow),
  ...documents.map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), 'utf8') })),
].filter(({ path }) => path !== 'test/tidy/words.test.ts')

function found(path: string, text: string, word: RegExp): string[] {
  return [...text.matchAll(new RegExp(word.source, 'g'))].map((match) => {
    return `${path}:${lineAt(text, match.index)} says '${match[0]}'`
  })
}

describe('words', () => {
  test('that were retired are gone from code and documents', () => {
    const left = texts.flatMap(({ path, text }) =>
      retired.flatMap(([word, instead]) => found(path, text, word).map((place) => `${place}; say ${instead}`)),
    )
    assert.deepEqual(left, [])
  })

  test('for a place in a table of rows is cell', () => {
    const left = texts
      .filter(({ path }) => path.startsWith('src/state/'))
      .flatMap(({ path, text }) => found(path, text, ofState))
    assert.deepEqual(left, [])
  })
})
