/** Which test files belong to which group of `npm test`. A tidy test holds that every test file belongs to one. */
import { readdirSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

export interface TestGroup {
  readonly name: string
  readonly about: string
  /** Folders whose `*.test.ts` files the group runs, relative to the repository. */
  readonly folders: readonly string[]
  /**
   * Of these the files of each run in one process: to start one takes longer than such a file. A file that awaits
   * something before its tests cannot be among them, and says so: its suite has ended by then.
   */
  readonly together?: readonly string[]
  /** Its folders for temporary files lie in memory where the system has room for them there: stores flush at every commit. */
  readonly inMemory?: boolean
  /** Longest time one test may take before it counts as hung. */
  readonly testTimeoutMs: number
  /** Longest time one file may take before it is stopped. */
  readonly fileTimeoutMs: number
  /** Runs only where it is named: it wants more of a machine than every contributor's has. */
  readonly onlyByName?: boolean
}

/** In the order in which they run: the quick ones first. */
export const testGroups: readonly TestGroup[] = [
  {
    name: 'unit',
    about: 'tidy rules, types, units, operator semantics',
    folders: ['test/tidy', 'test/types', 'test/unit', 'test/conformance-streams', 'examples'],
    together: [
      'test/tidy',
      'test/unit/broker',
      'test/unit/commit',
      'test/unit/config',
      'test/unit/deploy',
      'test/unit/dsl',
      'test/unit/engine',
      'test/unit/ha',
      'test/unit/lanes',
      'test/unit/operators',
      'test/unit/runtime',
      'test/unit/serde',
      'test/unit/state',
      'test/unit/testing',
      'test/unit/time',
      'test/unit/topology',
      'test/unit/view',
    ],
    inMemory: true,
    testTimeoutMs: 480_000,
    fileTimeoutMs: 900_000,
  },
  {
    name: 'engine',
    about: 'the running engine, the embedded broker, the files of both, its command line, its license, its documents',
    folders: [
      'test/engine',
      'test/conformance',
      'test/state',
      'test/reference',
      'test/ha',
      'test/cli',
      'test/license',
      'test/docs',
    ],
    testTimeoutMs: 300_000,
    fileTimeoutMs: 900_000,
  },
  {
    name: 'http',
    about: 'the HTTP interface over real sockets, and the console in a real browser',
    folders: ['test/http', 'test/console'],
    testTimeoutMs: 300_000,
    fileTimeoutMs: 900_000,
  },
  {
    name: 'ship',
    about: 'what is shipped: the package, projects made from it, deployments, dashboards',
    folders: ['test/ship'],
    testTimeoutMs: 1_200_000,
    fileTimeoutMs: 1_800_000,
  },
  {
    name: 'kafka',
    about: 'against a real Apache Kafka',
    folders: ['test/kafka'],
    testTimeoutMs: 600_000,
    fileTimeoutMs: 1_800_000,
  },
  {
    name: 'sim',
    about: 'seeded simulation of engine, lanes and broker, and of several pods',
    folders: ['test/simulation', 'test/simulation-ha'],
    testTimeoutMs: 900_000,
    fileTimeoutMs: 1_800_000,
  },
  {
    name: 'cluster',
    about: 'against three brokers of a real Apache Kafka, which want four cores',
    folders: ['test/cluster'],
    testTimeoutMs: 600_000,
    fileTimeoutMs: 900_000,
    onlyByName: true,
  },
]

export const repositoryRoot = join(import.meta.dirname, '..')

const skippedFolders = new Set(['node_modules', 'dist'])

/** Files below a folder whose name ends so, relative to the repository, sorted; none where the folder is missing. */
export function filesBelow(folder: string, ending: string): string[] {
  const found: string[] = []
  const walk = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.name.startsWith('.') || skippedFolders.has(entry.name)) continue
      const child = join(path, entry.name)
      if (entry.isDirectory()) walk(child)
      else if (entry.name.endsWith(ending)) found.push(relative(repositoryRoot, child).split(sep).join('/'))
    }
  }
  try {
    walk(join(repositoryRoot, folder))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return found.sort()
}

export function filesOf(group: TestGroup): string[] {
  return group.folders.flatMap((folder) => filesBelow(folder, '.test.ts'))
}
