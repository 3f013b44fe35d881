/** A power cut under the embedded broker: files keep what was forced to the disk, and of the rest whatever came there. */
import assert from 'node:assert/strict'
import fs, { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { contentOf, fill, filesOf } from './damage-support.ts'
import { temporaryFolder } from './embedded-support.ts'

/** Notes how long each file was, by its inode, when it was forced to the disk last. */
function watchSyncs(t: TestContext): ReadonlyMap<number, number> {
  const synced = new Map<number, number>()
  const { fdatasyncSync, writeFileSync: writeFile } = fs
  t.after(() => {
    Object.assign(fs, { fdatasyncSync, writeFileSync: writeFile })
    syncBuiltinESMExports()
  })
  fs.fdatasyncSync = (descriptor) => {
    fdatasyncSync(descriptor)
    const { ino, size } = fs.fstatSync(descriptor)
    synced.set(ino, size)
  }
  fs.writeFileSync = (path, data, options) => {
    writeFile(path, data, options)
    const flushes = typeof options === 'object' && options?.flush === true
    if (flushes && typeof path === 'string') synced.set(statSync(path).ino, statSync(path).size)
  }
  syncBuiltinESMExports()
  return synced
}

test('with fsync all that was acknowledged is there after a power cut, in transactions and outside of them', async (t) => {
  const at = temporaryFolder(t)
  const synced = watchSyncs(t)
  let syncedThen: ReadonlyMap<number, number> = new Map()
  const copied = (): void => {
    syncedThen = new Map(synced)
  }
  const { folder, earlier } = await fill(at, 9, 'suddenly', { fsync: true, copied })
  const copy = join(at, 'copy')
  cpSync(folder, copy, { recursive: true })
  const expected = await contentOf(copy)
  const kept = new Map(filesOf(folder).map((file) => [file, syncedThen.get(statSync(join(at, 'live', file)).ino) ?? 0]))
  const random = new Random(7)
  let cuts = 0
  for (let i = 0; i < 40; i++) {
    rmSync(copy, { recursive: true })
    cpSync(folder, copy, { recursive: true })
    for (const [file, least] of kept) {
      if (file === 'owner' || file === 'lock') continue
      const { size } = statSync(join(folder, file))
      if (file === 'journal.end') {
        // Written in place: any of its contents may have come to the disk.
        const older = join(earlier.at(-1) as string, file)
        if (random.next() < 0.5) writeFileSync(join(copy, file), readFileSync(older))
        continue
      }
      const left = least + Math.floor(random.next() * (size - least + 1))
      if (left < size) cuts++
      truncateSync(join(copy, file), left)
    }
    assert.deepEqual(await contentOf(copy), expected)
  }
  assert.ok(cuts > 40, `${cuts} files were cut`)
})
