/** A program in the host of single tasks, fed in the order of dispatch: what the operators give without lanes and commits. */
import { defineApp } from '../../src/index.ts'
import type { Json } from '../../conformance/expr.ts'
import { ReferenceDriver } from '../../conformance/reference/reference-driver.ts'
import { buildProgram } from './build.ts'
import { dispatchOrder, type Program } from './program.ts'
import { add, type Results } from './results.ts'

export async function runDriver(program: Program): Promise<Results> {
  const plain = { ...program, nodes: program.nodes.map(({ slow: _, ...node }) => node) }
  const app = defineApp({ applicationId: 'reference', build: (topology) => buildProgram(plain, topology) })
  const driver = new ReferenceDriver(app, { partitions: program.partitions })
  const results: Results = new Map()
  for (const { input } of dispatchOrder(program)) {
    const { topic, key, value, timestamp, partition } = input
    await driver.input(topic).pipe(key, value, { timestamp, partition })
    for (const told of driver.readAllOutputs())
      add(results, told.topic, told.key as Json, told.value as Json, told.timestamp)
  }
  driver.close()
  return results
}
