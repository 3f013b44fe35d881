import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { consoleDigest } from '../../scripts/console.ts'
import { digestFile, pictureFolder } from '../../scripts/screenshots.ts'
import { pageNames } from './support/visit.ts'

test('the pictures of the console show its pages as they are; `node scripts/screenshots.ts` makes them anew', () => {
  assert.equal(readFileSync(digestFile, 'utf8').trim(), consoleDigest())
  for (const name of pageNames) {
    for (const theme of ['light', 'dark']) assert.ok(existsSync(join(pictureFolder, `${name}-${theme}.png`)), name)
  }
})
