/** Killed in the middle of its commits: two levels of state, in memory or on disk, and a list that shows every fault. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'
import { appFile } from './support/engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-kill-running-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const kills = 10
const keys = 10
const total = 3000
const seed = Number(process.env.KILL_SEED ?? Date.now() % 100_000)

interface Printed {
  readonly topic: string
  readonly key: string
  readonly value: number[] | number
}

const numbers = Array.from({ length: total }, (_, n) => ({ key: `k${n % keys}`, value: n, timestamp: 1000 + n }))
const feed = join(folder, 'numbers.ndjson')
writeFileSync(feed, numbers.map((line) => `${JSON.stringify(line)}\n`).join(''))

describe(`a run that is killed while it commits (KILL_SEED=${seed})`, () => {
  for (const store of ['lmdb', 'memory']) {
    test(`has each record once and in order, in its output and its state: ${store} stores`, async (t) => {
      const random = new Random(seed)
      const settings = [
        `broker.bootstrap-servers=embedded:${join(folder, store, 'broker')}`,
        `engine.state.dir=${join(folder, store, 'state')}`,
        `engine.state.store=${store}`,
        'commit-barrier.interval-ms=10',
        'engine.lanes.count=2',
        'runtime.http.enabled=false',
      ]
      const args = ['run', appFile('running-sum'), '--feed', `numbers=${feed}`]
      args.push(...settings.flatMap((setting) => ['--set', setting]))
      let within = 0
      for (let kill = 0; kill < kills; kill++) {
        const running = startMillrace([...args, '--feed-rate', '800'])
        await eventually('it runs', () => /→ RUNNING/.test(running.stderr()) || running.child.exitCode !== null)
        await sleep(random.int(400))
        running.child.kill('SIGKILL')
        const { signal, stderr } = await running.result
        assert.equal(signal, 'SIGKILL', `life ${kill} ended by itself: ${stderr}`)
        if (/→ RUNNING/.test(stderr)) within++
      }
      t.diagnostic(`${within} of ${kills} were killed while they processed`)
      const { code, stdout, stderr } = await millrace([...args, '--print', 'seen', '--print', 'sums', '--until-idle'])
      assert.equal(code, 0, stderr)
      const printed = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Printed)
      for (let key = 0; key < keys; key++) {
        const values = numbers.flatMap((n) => (n.key === `k${key}` ? [n.value] : []))
        const updates = printed.flatMap((p) => (p.topic === 'seen' && p.key === `k${key}` ? [p.value] : []))
        assert.deepEqual(
          updates,
          values.map((_, i) => values.slice(0, i + 1)),
          `k${key}`,
        )
      }
      for (let mod = 0; mod < 3; mod++) {
        const sums = printed.flatMap((p) => (p.topic === 'sums' && p.key === `mod-${mod}` ? [p.value as number] : []))
        const steps = sums.map((sum, i) => sum - (sums[i - 1] ?? 0)).sort((a, b) => a - b)
        assert.deepEqual(
          steps,
          numbers.map((n) => n.value).filter((value) => value % 3 === mod),
          `mod-${mod}`,
        )
      }
    })
  }
})
