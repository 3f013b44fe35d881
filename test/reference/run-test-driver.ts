/** A program on the public test driver: the code of the running engine on one thread, everything there before it starts. */
import { defineApp, serdes } from '../../src/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import type { Json } from '../../conformance/expr.ts'
import { buildProgram } from './build.ts'
import { inputOf, type Program } from './program.ts'
import { add, type Results, topicsOf } from './results.ts'

export interface DriverRun {
  readonly results: Results
  readonly warnings: readonly string[]
}

/** `look`: at the driver when all is done. */
export async function runTestDriver(
  program: Program,
  lanes: number,
  look?: (driver: TopologyTestDriver) => void,
): Promise<DriverRun> {
  const { partitions } = program
  const app = defineApp({ applicationId: 'reference', build: (topology) => buildProgram(program, topology) })
  const driver = new TopologyTestDriver(app, { partitions, lanes })
  // What nobody reads lies in topics of the running engine too; the driver refuses it.
  const read = new Set(program.nodes.flatMap(({ op, topic }) => (op === 'to' ? [] : [topic])))
  const used = new Set(driver.topology.sources.flatMap(({ topics }) => topics))
  await driver.pipeAll(inputOf(program).filter(({ topic }) => read.has(topic) && used.has(topic)))
  const results: Results = new Map()
  for (const topic of topicsOf(program)) {
    const output = driver.output<string, Json>(topic, { key: serdes.string, value: serdes.json<Json>() })
    for (const { key, value, timestamp } of output.readAll()) add(results, topic, key, value, timestamp)
  }
  look?.(driver)
  driver.close()
  return { results, warnings: driver.warnings() }
}
