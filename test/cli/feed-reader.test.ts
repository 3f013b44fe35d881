import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { parseFeed, parseFeeds } from '../../src/cli/feed/feed-reader.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-feed-'))
after(() => rmSync(folder, { recursive: true }))

const hasNumbers = process.platform === 'linux'

async function linesOf(content: string | Buffer): Promise<string[]> {
  const file = join(folder, 'lines.ndjson')
  writeFileSync(file, content)
  const lines: string[] = []
  for await (const piece of parseFeed(`t=${file}`).open()) lines.push(...piece)
  return lines
}

describe('reading a feed', () => {
  test('gives whole lines, the last one with or without its end', async () => {
    assert.deepEqual(await linesOf('a\nb\n'), ['a', 'b'])
    assert.deepEqual(await linesOf('a\nb'), ['a', 'b'])
    assert.deepEqual(await linesOf(''), [])
  })

  test('puts lines together that were read in pieces, also within a character', async () => {
    const long = 'ä'.repeat(200_001)
    assert.deepEqual(await linesOf(`x${long}\n${long}\n`), [`x${long}`, long])
  })

  test('passes over a byte order mark', async () => {
    assert.deepEqual(await linesOf('\ufeffa\n'), ['a'])
  })

  test('refuses bytes that are no UTF-8, behind the lines before them', async () => {
    const file = join(folder, 'latin.ndjson')
    writeFileSync(file, Buffer.from('a\nb\nM\xfcnchen\nc\n', 'latin1'))
    const lines: string[] = []
    const reading = async (): Promise<void> => {
      for await (const piece of parseFeed(`t=${file}`).open()) lines.push(...piece)
    }
    await assert.rejects(reading, { code: 'FEED_INVALID', message: /^Line 3 of .*latin\.ndjson is no text in UTF-8; / })
    assert.deepEqual(lines, ['a', 'b'])
  })

  test('says at once what is wrong with the option', () => {
    assert.throws(() => parseFeed('flights'), { code: 'USAGE', message: /takes topic=file/ })
    assert.throws(() => parseFeed('=file'), { code: 'USAGE' })
    assert.throws(() => parseFeed('flights='), { code: 'USAGE' })
    assert.throws(() => parseFeed('flights=nowhere.ndjson'), { code: 'FEED_INVALID', message: /does not exist/ })
    assert.throws(() => parseFeed(`flights=${folder}`), { code: 'FEED_INVALID', message: /is a folder/ })
  })

  test('refuses standard input for two feeds: the second one would get nothing', () => {
    const message = /^--feed a=- and --feed b=- both read standard input, which can be read once: name a file/
    assert.throws(() => parseFeeds(['a=-', 'b=-']), { code: 'USAGE', message })
    assert.equal(parseFeeds(['a=-', `b=${import.meta.filename}`]).length, 2)
  })

  test('does not count the lines of standard input and of pipes, which cannot be read again', () => {
    assert.equal(parseFeed('flights=-').mark, undefined)
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    assert.equal(parseFeed(`flights=${pipe}`).mark, undefined)
  })

  test('counts the lines of a file that the shell passes in by the file, not by its number', {
    skip: !hasNumbers,
  }, () => {
    const file = join(folder, 'passed.ndjson')
    writeFileSync(file, '')
    const number = openSync(file, 'r')
    assert.equal(parseFeed(`t=/dev/fd/${number}`).mark, realpathSync(file))
    closeSync(number)
  })

  test('keeps an equals sign in the file name', () => {
    const file = join(folder, 'a=b.ndjson')
    writeFileSync(file, '')
    assert.deepEqual(parseFeed(`t=${file}`).source, file)
  })
})
