/** The backlogs that are known to have stopped an application, each with its function. */
import type { Backlog } from './judge.ts'
import type { SceneOptions } from './scene.ts'

export type Kind = Pick<SceneOptions, 'kind' | 'backlog' | 'failsSeconds'>

function spread(records: number, ms: number, keys = 100): Backlog[] {
  return Array.from({ length: records }, (_, n) => ({ key: `k${n % keys}`, n, ms }))
}

/** One record in fifty is of one key, up to so many of them; the others are quicker. */
function hot(records: number, most: number, ms: number): Backlog[] {
  let left = most
  return Array.from({ length: records }, (_, n) => {
    if (n % Math.floor(records / most) !== 0 || left-- <= 0) return { key: `k${n % 100}`, n, ms: 5 }
    return { key: 'hot', n, ms }
  })
}

/** The first half takes no time: so much may be let in as a quick function gets through. */
function turns(records: number, ms: number): Backlog[] {
  return spread(records, ms).map((each) => (each.n < records / 2 ? { ...each, ms: 0 } : each))
}

export const kinds: Readonly<Record<string, (records: number) => Kind>> = {
  'sync-5': (records) => ({ kind: 'waits', backlog: spread(records, 5) }),
  'sync-20': (records) => ({ kind: 'waits', backlog: spread(records, 20) }),
  'sync-100': (records) => ({ kind: 'waits', backlog: spread(records, 100) }),
  'turns-20': (records) => ({ kind: 'waits', backlog: turns(records, 20) }),
  'turns-200': (records) => ({ kind: 'waits', backlog: turns(records, 200) }),
  'later-20': (records) => ({ kind: 'later', backlog: turns(records, 20) }),
  'later-200': (records) => ({ kind: 'later', backlog: turns(records, 200) }),
  'cpu-3': (records) => ({ kind: 'computes', backlog: spread(records, 3) }),
  'one-key': (records) => ({ kind: 'later', backlog: hot(records, Math.ceil(records / 50), 150) }),
  service: (records) => ({ kind: 'asks', backlog: spread(records, 0, 2000) }),
  'failing-service': (records) => ({ kind: 'asks', backlog: spread(records, 0, 2000), failsSeconds: 30 }),
}
