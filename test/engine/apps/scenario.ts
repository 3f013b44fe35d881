/** One scenario, of the file that is named, as an application. */
import { readFileSync } from 'node:fs'
import { defineApp } from 'millrace'
import { buildBundle, type Recorded } from '../support/scenario-bundle.ts'

const file = new URL(import.meta.url).searchParams.get('scenario') ?? ''
const scenario = JSON.parse(readFileSync(file, 'utf8')) as Recorded

export default defineApp({
  applicationId: 'scenarios',
  build: (topology) => {
    buildBundle(topology, [scenario])
  },
})
