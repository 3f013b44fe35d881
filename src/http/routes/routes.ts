/** The table of endpoints: routing, methods, gates, `/info`, `/openapi.json` and `docs/http.md` all come from it. */
import type { Route } from './route.ts'
import { aboutRoutes, descriptionRoutes, probeRoutes } from './routes-about.ts'
import { dataRoutes, flowRoutes } from './routes-data.ts'
import { commandRoutes, debugRoutes, introspectionRoutes, progressRoutes } from './routes-engine.ts'
import { highAvailabilityRoutes } from './routes-ha.ts'

export const routes: readonly Route[] = [
  ...probeRoutes,
  ...aboutRoutes,
  ...introspectionRoutes,
  ...progressRoutes,
  ...flowRoutes,
  ...dataRoutes,
  ...commandRoutes,
  ...highAvailabilityRoutes,
  ...debugRoutes,
  ...descriptionRoutes,
]
