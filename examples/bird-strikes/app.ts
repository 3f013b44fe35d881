/**
 * Bird strikes on aircraft, joined with what is known of the animal and of the operator.
 *
 * The strikes are a table by report number: a report that is corrected replaces the earlier one, and every total that it
 * went into is corrected, too. Species are found by a foreign key: when a species' record changes, all reports that name
 * it change with it.
 */
import { defineApp, serdes } from 'millrace'

export interface Strike {
  readonly airport: string
  readonly operator: string
  readonly state: string
  readonly species: string
  readonly size: 'Small' | 'Medium' | 'Large' | ''
  /** Dollars. */
  readonly cost: number
}

export interface Species {
  /** `gulls`, `raptors`, … */
  readonly family: string
}

export interface NamedStrike extends Strike {
  readonly family: string
}

export interface Total {
  readonly strikes: number
  readonly cost: number
}

export interface Standing extends Total {
  /** What the operator has announced to spend on prevention. */
  readonly budget: number | null
}

const nothing: Total = { strikes: 0, cost: 0 }

export default defineApp({
  applicationId: 'bird-strikes',
  build(topology) {
    const species = topology.table('species', { key: serdes.string, value: serdes.json<Species>(), store: 'species' })
    const budgets = topology.table('budgets', { key: serdes.string, value: serdes.json<number>(), store: 'budgets' })
    const strikes = topology
      .table('strikes', { key: serdes.string, value: serdes.json<Strike>() })
      .leftJoin(species, (strike, known): NamedStrike => ({ ...strike, family: known?.family ?? 'unknown' }), {
        on: (strike) => strike.species,
        store: 'named-strikes',
      })

    const add = (total: Total, { cost }: NamedStrike): Total => ({
      strikes: total.strikes + 1,
      cost: total.cost + cost,
    })
    const subtract = (total: Total, { cost }: NamedStrike): Total => ({
      strikes: total.strikes - 1,
      cost: total.cost - cost,
    })

    strikes
      .groupBy((strike) => [strike.family, strike], { key: serdes.string })
      .aggregate(() => nothing, add, subtract, { store: 'by-family' })
      .toStream()
      .to('by-family')

    strikes
      .groupBy((strike) => [strike.operator, strike], { key: serdes.string })
      .aggregate(() => nothing, add, subtract, { store: 'by-operator' })
      .leftJoin(budgets, (total, budget): Standing => ({ ...total, budget: budget ?? null }), { store: 'standings' })
      .toStream()
      .to('standings')
  },
})
