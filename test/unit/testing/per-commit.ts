/** Applications of which nothing is committed before a test says so. */
import { defineApp, serdes, type Stream, type Topology } from '../../../src/index.ts'
import { type DriverOptions, type OutputRecord, TopologyTestDriver } from '../../../src/testing/index.ts'

export const perCommit = { emit: 'per-commit' } as const
export const number = { value: serdes.json<number>() }

/** Nothing is committed before `commit` is called: the first record's commit is over, and the next one far. */
export async function driverOf(
  build: (topology: Topology) => void,
  options: DriverOptions = {},
): Promise<TopologyTestDriver> {
  const config = { 'commit-barrier.interval-ms': 8000, 'commit-barrier.idle-interval-ms': 8000 }
  const app = defineApp({ applicationId: 'test', build })
  const driver = new TopologyTestDriver(app, {
    commits: 'interval',
    ...options,
    config: { ...config, ...options.config },
  })
  await driver.input('in').pipe('start', null, { timestamp: 0 })
  await driver.commit()
  driver.readAllOutputs()
  return driver
}

const shown = ({ key, value, timestamp }: OutputRecord<unknown, unknown>): string =>
  `${typeof key === 'object' ? JSON.stringify(key) : key} ${JSON.stringify(value)} @${timestamp}`

export const told = (driver: TopologyTestDriver, topic = 'out'): string[] => driver.output(topic).readAll().map(shown)

export const numbers = (topology: Topology): Stream<string, number> => topology.stream<string, number>('in', number)

export const feed = async (driver: TopologyTestDriver, ...records: Array<[key: string, value: unknown, at: number]>) =>
  driver.input('in').pipeAll(records.map(([key, value, timestamp]) => ({ key, value, timestamp })))
