/** The scenarios from `from` to `to` of all that the engine can be held to, as one application. */
import { defineApp } from 'millrace'
import { buildBundle, eligibleScenarios } from '../support/scenario-bundle.ts'

const { searchParams } = new URL(import.meta.url)
const scenarios = eligibleScenarios(searchParams.get('optimize') === 'all')
const part = scenarios.slice(Number(searchParams.get('from')), Number(searchParams.get('to')))

export default defineApp({
  applicationId: 'scenarios',
  build: (topology) => {
    buildBundle(topology, part)
  },
})
