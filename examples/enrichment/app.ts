/** Flights with the name of their airport, which a service over HTTP knows. */
import { defineApp, serdes, withRetry } from 'millrace'
import type { Departure } from '../datasets.ts'

const service = process.env.AIRPORTS_URL ?? 'http://localhost:8088'

async function withName(flight: Departure): Promise<Departure & { readonly name: string }> {
  const answer = await fetch(`${service}/airports/${flight.origin}`)
  if (!answer.ok) throw new Error(`the service answered ${answer.status} for ${flight.origin}`)
  return { ...flight, name: ((await answer.json()) as { name: string }).name }
}

export default defineApp({
  applicationId: 'enrichment',
  build(topology) {
    topology
      .stream('departures', { key: serdes.string, value: serdes.json<Departure>() })
      .mapValues(withRetry(withName, { attempts: 5, backoff: '5ms' }), { concurrency: 16, timeout: '30s' })
      .to('named')
  },
})
