/** The scenarios from `from` to `to` of those without event time, as one application. */
import { defineApp } from 'millrace'
import { buildBundle, timelessScenarios } from '../support/scenario-bundle.ts'

const { searchParams } = new URL(import.meta.url)
const scenarios = timelessScenarios(searchParams.get('optimize') === 'all')
const part = scenarios.slice(Number(searchParams.get('from')), Number(searchParams.get('to')))

export default defineApp({
  applicationId: 'scenarios',
  build: (topology) => {
    buildBundle(topology, part)
  },
})
