/** Claims that are out of all proportion to those the same company has made before. */
import { defineApp, keyValueStore, serdes } from 'millrace'
import type { Strike } from '../datasets.ts'

/** A company is known after so many claims. */
export const knownAfter = 3
/** More than so many times the usual is suspicious. */
export const suspicious = 5

interface Profile {
  readonly claims: number
  readonly dollars: number
}

export interface Suspicion {
  readonly id: number
  readonly dollars: number
  readonly usual: number
}

export default defineApp({
  applicationId: 'fraud',
  build(topology) {
    const profiles = keyValueStore<string, Profile>('profiles', { key: serdes.string })
    topology
      .stream('claims', { key: serdes.string, value: serdes.json<Strike>() })
      .filter((claim) => claim.dollars > 0)
      .processValues<Suspicion>(
        (context) => {
          const known = context.store(profiles)
          return ({ id, dollars }, operator) => {
            const { claims, dollars: sum } = known.get(operator) ?? { claims: 0, dollars: 0 }
            known.put(operator, { claims: claims + 1, dollars: sum + dollars })
            const usual = sum / claims
            if (claims < knownAfter || dollars <= usual * suspicious) return
            context.logger.warn({ claim: id, dollars }, 'a suspicious claim')
            return context.forward({ id, dollars, usual })
          }
        },
        { stores: [profiles] },
      )
      .to('suspicions')
  },
})
