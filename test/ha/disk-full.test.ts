/** A pod whose disk is full, in a group: real engines, stores on a small file system of their own. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lastByKey } from '../engine/support/engine.ts'
import { noMount, remount, smallDisks } from '../support/small-disk.ts'
import { type Pod, Pods } from './support/pods.ts'

const application = new URL('../engine/apps/large-rows.ts', import.meta.url)
const handoffTimeoutMs = 1500
const folder = mkdtempSync(join(tmpdir(), 'millrace-full-pod-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const mount = smallDisks()

/** Whatever is free is taken; the stores may be quicker with the last of it. */
function fill(small: string): void {
  const { bavail, bsize } = statfsSync(small)
  try {
    writeFileSync(join(small, 'ballast'), Buffer.alloc(bavail * bsize))
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOSPC') throw error
  }
}

const text = 'x'.repeat(600)
const keys = 1000
const round = Array.from({ length: keys }, (_, i) => ({ key: `key-${i}`, value: text }))
const lagOf = (pod: Pod): number => pod.status?.replicationLagRecords ?? 0

const settings = {
  'engine.state.store': 'lmdb',
  'engine.state.write-buffer-bytes': 0,
  'ha.handoff-timeout': handoffTimeoutMs,
}

/** As many as rounds were fed, each of them. */
async function allCounted(pods: Pods, rounds: number): Promise<void> {
  const counts = await pods.until('all are counted', async () => {
    const read = lastByKey(await pods.read('counts'))
    return Object.values(read).every((count) => count === rounds) && read
  })
  assert.equal(Object.keys(counts).length, keys)
}

test('the active pod leaves the role to one with room, where its own disk has none', async (t) => {
  const small = mount('active', 'size=16m')
  if (small === undefined) return t.skip(noMount)
  const pods = await Pods.none(t, application, { ...settings, 'engine.state.dir': join(folder, 'roomy') })
  const full = await pods.add('pod-a', { 'engine.state.dir': small })
  await pods.active()
  const other = await pods.add('pod-b')
  let rounds = 0
  const feed = async (): Promise<void> => {
    rounds++
    await pods.put('in', round)
  }
  await feed()
  await pods.ready()
  assert.equal(full.active, true)
  fill(small)
  await pods.until('the disk of the active one is full', async () => {
    await feed()
    return full.runtime.view.diskFull() !== null
  })
  await pods.until('the one with room is active', () => other.active)
  await feed()
  await allCounted(pods, rounds)
  assert.notEqual(full.haState, 'READY_STANDBY')
  remount(small, 'size=128m')
  await pods.until('it has room, and is ready', () => full.haState === 'READY_STANDBY')
})

test('a pod whose disk is full is passed over, says why, and gives back what it was forced to take', async (t) => {
  const small = mount('small', 'size=16m')
  if (small === undefined) return t.skip(noMount)
  const pods = await Pods.none(t, application, {
    ...settings,
    'engine.state.dir': join(folder, 'large'),
  })
  const first = await pods.add('pod-a')
  await pods.active()
  const full = await pods.add('pod-b', { 'engine.state.dir': small, 'ha.failover-priority': 300 })
  const other = await pods.add('pod-c')
  let rounds = 0
  const feed = async (): Promise<void> => {
    rounds++
    await pods.put('in', round)
  }
  await feed()
  await pods.ready()
  fill(small)
  await pods.until('the disk of one is full', async () => {
    await feed()
    return full.runtime.view.diskFull() !== null
  })
  // What comes while nothing is fetched for it counts as lag all the same.
  const before = lagOf(full)
  for (let i = 0; i < 3; i++) await feed()
  assert.equal(full.haState, 'CATCHING_UP')
  assert.match(full.status?.notReady ?? '', /^the disk has no room for the store of partition \d in .+small/)
  await pods.until('its lag grows', () => lagOf(full) >= before + 2 * keys)

  await pods.carryOut(first, '/ha/switch')
  await pods.until('the one with room is active', () => other.active)

  const { commandOffset } = await pods.command(other, '/ha/promote?pod=pod-b&force=true')
  await pods.until('it has the token', () => full.haState === 'PROMOTING')
  await pods.until('a pod with room is active again', () => first.active || other.active)
  const active = await pods.active()
  const said = await pods.until('the result is there', () =>
    active.status?.commands.find((each) => each.commandOffset === commandOffset && each.outcome !== 'PENDING'),
  )
  assert.equal(said.outcome, 'REJECTED')
  assert.match(said.reason, /^pod pod-b had the token, and did not become ACTIVE; pod pod-[ac] took over instead$/)

  remount(small, 'size=128m')
  await pods.until('it has room, and is ready', () => full.haState === 'READY_STANDBY')
  await pods.carryOut(active, '/ha/promote?pod=pod-b')
  await pods.until('it is active', () => full.active)
  await feed()
  await allCounted(pods, rounds)
})
