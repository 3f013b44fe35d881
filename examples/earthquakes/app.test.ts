import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Shock, type Swarm, swarmFrom } from './app.ts'
import { type FeedRecord, regionOf, shocks } from './data.ts'

const hour = 3_600_000
const gap = 2 * hour
/** Out-of-orderness and grace: how far event time must be past a window before it is told. */
const settled = 10 * 60_000

type Key = { readonly key: string; readonly start: number; readonly end: number }

const all = shocks()
const last = all.at(-1)?.timestamp ?? 0

function byRegion(): Map<string, Array<FeedRecord<Shock>>> {
  const regions = new Map<string, Array<FeedRecord<Shock>>>()
  for (const shock of all) regions.set(shock.key, [...(regions.get(shock.key) ?? []), shock])
  return regions
}

async function run(): Promise<TopologyTestDriver> {
  const driver = new TopologyTestDriver(app)
  await driver.input<string, Shock>('shocks').pipeAll(all)
  return driver
}

/** Cuts where nothing happened for longer than the gap: what sessions are, without any window. */
function plainSwarms(): string[] {
  const found: string[] = []
  for (const [region, list] of byRegion()) {
    let swarm: Array<FeedRecord<Shock>> = []
    const end = (): void => {
      const [from, to] = [swarm[0]?.timestamp ?? 0, swarm.at(-1)?.timestamp ?? 0]
      const strongest = Math.max(...swarm.map((shock) => shock.value.magnitude))
      if (swarm.length >= swarmFrom && to + gap + settled < last)
        found.push(`${region} ${from} ${to} ${swarm.length} ${strongest}`)
      swarm = []
    }
    for (const shock of list) {
      if (swarm.length > 0 && shock.timestamp - (swarm.at(-1)?.timestamp ?? 0) > gap) end()
      swarm.push(shock)
    }
    end()
  }
  return found.sort()
}

describe('the week of earthquakes', () => {
  test('holds shocks of one week, in order, by region', () => {
    assert.equal(all.length, 1707)
    assert.ok(all.every((shock, i) => i === 0 || shock.timestamp >= (all[i - 1]?.timestamp ?? 0)))
    assert.equal(regionOf('4km W of Castaic, CA'), 'CA')
    assert.equal(regionOf('South of the Fiji Islands'), 'South of the Fiji Islands')
  })

  test('has the swarms that a plain look at the list finds', async () => {
    const driver = await run()
    const told = driver
      .output<Key, Swarm>('swarms')
      .readAll()
      .map(({ key, value }) => `${key.key} ${key.start} ${key.end} ${value.shocks} ${value.strongest}`)
    assert.ok(told.length > 20, `${told.length} swarms`)
    assert.deepEqual(told.sort(), plainSwarms())
  })

  test('counts the shocks within an hour up to each shock', async () => {
    const driver = await run()
    const told = new Map<string, number>()
    for (const { key, value } of driver.output<Key, number>('shocks-within-an-hour').readAll())
      told.set(`${key.key} ${key.end}`, value)
    let checked = 0
    for (const [region, list] of byRegion()) {
      for (const { timestamp } of list) {
        if (timestamp + settled >= last) continue
        const within = list.filter((other) => other.timestamp >= timestamp - hour && other.timestamp <= timestamp)
        assert.equal(told.get(`${region} ${timestamp}`), within.length, `${region} ${timestamp}`)
        checked++
      }
    }
    assert.ok(checked > 1600)
  })
})
