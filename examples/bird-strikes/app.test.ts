import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Species, type Standing, type Strike, type Total } from './app.ts'
import { species, strikes } from './data.ts'

/** The newest value of each key that a topic has seen. */
function newest<V>(driver: TopologyTestDriver, topic: string): Record<string, V> {
  return Object.fromEntries(
    driver
      .output<string, V>(topic)
      .readAll()
      .map(({ key, value }) => [key, value]),
  )
}

const reports = strikes().slice(0, 2500)

function totals(keyOf: (strike: Strike) => string): Record<string, Total> {
  const result: Record<string, Total> = {}
  for (const { value } of reports) {
    const before = result[keyOf(value)] ?? { strikes: 0, cost: 0 }
    result[keyOf(value)] = { strikes: before.strikes + 1, cost: before.cost + value.cost }
  }
  return result
}

describe('bird strikes', () => {
  const known = species()
  const families = new Map(known.map(({ key, value }) => [key, value.family]))
  const familyOf = (strike: Strike): string => families.get(strike.species) ?? 'unknown'

  test('are told by family and operator as a plain sum of the reports gives', async () => {
    const driver = new TopologyTestDriver(app)
    const half = Math.floor(known.length / 2)
    const input = driver.input<string, Species>('species')
    // Half of the species come only when the reports that name them are there: these are corrected.
    await input.pipeAll(known.slice(0, half))
    await driver.input<string, Strike>('strikes').pipeAll(reports)
    await input.pipeAll(known.slice(half))

    assert.ok(families.size > 10)
    assert.deepEqual(newest<Total>(driver, 'by-family'), totals(familyOf))
    const standings = newest<Standing>(driver, 'standings')
    const expected = Object.entries(totals((strike) => strike.operator))
    assert.deepEqual(standings, Object.fromEntries(expected.map(([key, total]) => [key, { ...total, budget: null }])))
  })

  test('leave the totals when a report is withdrawn, and change them when it is corrected', async () => {
    const driver = new TopologyTestDriver(app)
    const strike = { airport: 'X', operator: 'ACME', state: 'Ohio', species: 'Gull', size: 'Small', cost: 100 } as const
    await driver.input<string, Strike>('strikes').pipe('r1', strike)
    await driver.input<string, Strike>('strikes').pipe('r2', { ...strike, cost: 20 })
    await driver.input<string, number>('budgets').pipe('ACME', 5000)
    assert.deepEqual(newest<Standing>(driver, 'standings').ACME, { strikes: 2, cost: 120, budget: 5000 })
    await driver.input<string, Strike>('strikes').pipe('r1', { ...strike, cost: 70 })
    assert.deepEqual(newest<Standing>(driver, 'standings').ACME, { strikes: 2, cost: 90, budget: 5000 })
    await driver.input<string, Strike>('strikes').pipe('r2', null)
    assert.deepEqual(newest<Standing>(driver, 'standings').ACME, { strikes: 1, cost: 70, budget: 5000 })
  })
})
