/** The scenarios from `from` to `to` of those with event time, or of those without, as one application. */
import { defineApp } from 'millrace'
import { buildBundle, timedScenarios, timelessScenarios } from '../support/scenario-bundle.ts'

const { searchParams } = new URL(import.meta.url)
const which = searchParams.get('timed') === 'yes' ? timedScenarios : timelessScenarios
const scenarios = which(searchParams.get('optimize') === 'all')
const part = scenarios.slice(Number(searchParams.get('from')), Number(searchParams.get('to')))

export default defineApp({
  applicationId: 'scenarios',
  build: (topology) => {
    buildBundle(topology, part)
  },
})
