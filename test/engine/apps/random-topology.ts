/** The random topologies of the seeds from `from` to `to`, side by side in one application. */
import { defineApp } from 'millrace'
import { buildRandom } from '../support/random-topology.ts'

const { searchParams } = new URL(import.meta.url)

export default defineApp({
  applicationId: 'random',
  build: (topology) => {
    for (let seed = Number(searchParams.get('from')); seed < Number(searchParams.get('to')); seed++)
      buildRandom(topology, seed)
  },
})
