import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { KeptJsonFile } from '../../../src/runtime/kept-json.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-kept-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const path = join(folder, 'kept.json')
const witness = `${path}.last`
const valueAt = (n: number) => ({ schemas: Array.from({ length: n }, (_, id) => ({ id, text: `"größe ${id}"` })) })

/** Damages one of the two files, or both by swapping them. */
function damage(random: Random): string {
  const file = random.next() < 0.7 ? path : witness
  const bytes = readFileSync(file)
  const at = Math.floor(random.next() * bytes.length)
  const kinds: Readonly<Record<string, () => void>> = {
    bit: () => {
      bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random.next() * 8))
      writeFileSync(file, bytes)
    },
    cut: () => writeFileSync(file, bytes.subarray(0, at)),
    zeroed: () => writeFileSync(file, bytes.fill(0, at, Math.min(at + 64, bytes.length))),
    missing: () => rmSync(file),
    older: () => copyFileSync(`${file}.older`, file),
    swapped: () => {
      const other = readFileSync(file === path ? witness : path)
      writeFileSync(file === path ? witness : path, bytes)
      writeFileSync(file, other)
    },
  }
  const names = Object.keys(kinds)
  const kind = names[Math.floor(random.next() * names.length)] as string
  kinds[kind]?.()
  return `${kind} of ${file} at ${at}`
}

function written(witnessed: boolean): void {
  rmSync(path, { force: true })
  rmSync(witness, { force: true })
  const file = new KeptJsonFile(path, { witnessed })
  for (let n = 1; n <= 5; n++) {
    file.write(valueAt(n))
    if (n !== 3) continue
    copyFileSync(path, `${path}.older`)
    if (witnessed) copyFileSync(witness, `${witness}.older`)
  }
}

describe('what a process keeps for the next one', () => {
  test('is read back as it was written last, by this process and the next', () => {
    written(true)
    assert.deepEqual(new KeptJsonFile(path, { witnessed: true }).read(), { kind: 'whole', value: valueAt(5) })
    const next = new KeptJsonFile(path, { witnessed: true })
    next.read()
    next.write(valueAt(6))
    assert.deepEqual(new KeptJsonFile(path, { witnessed: true }).read(), { kind: 'whole', value: valueAt(6) })
    assert.deepEqual(new KeptJsonFile(join(folder, 'none'), { witnessed: true }).read(), { kind: 'none' })
  })

  test('is the newest, or known to be damaged, whatever happens to one of its files', () => {
    const random = new Random(3)
    let refused = 0
    written(true)
    const whole = [path, witness].map((file) => [file, readFileSync(file)] as const)
    for (let i = 0; i < 500; i++) {
      for (const [file, bytes] of whole) writeFileSync(file, bytes)
      const what = damage(random)
      const read = new KeptJsonFile(path, { witnessed: true }).read()
      if (read.kind === 'damaged') refused++
      else assert.deepEqual(read, { kind: 'whole', value: valueAt(5) }, what)
    }
    assert.ok(refused > 250, String(refused))
  })

  test('is nothing that was never written, without the number beside it, too', () => {
    const random = new Random(4)
    for (let i = 0; i < 60; i++) {
      written(false)
      copyFileSync(`${path}.older`, witness)
      const what = damage(random)
      const read = existsSync(path) ? new KeptJsonFile(path).read() : ({ kind: 'none' } as const)
      if (read.kind === 'whole')
        assert.ok([5, 3].includes((read.value as ReturnType<typeof valueAt>).schemas.length), what)
    }
  })
})
