/** `millrace topology`: describes an application without running it. */
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadConfig } from '../config/load.ts'
import { EngineError } from '../errors.ts'
import { loadApplication } from '../lanes/application.ts'
import { describeText, describeTopology } from '../topology/describe.ts'

export interface TopologyArguments {
  readonly format: string
  readonly config?: string
  readonly set: readonly string[]
}

export async function renderTopology(path: string, args: TopologyArguments): Promise<string> {
  if (args.format !== 'text' && args.format !== 'json') {
    throw new EngineError('USAGE', `--format is '${args.format}'; it is text or json.`)
  }
  const application = await loadApplication(pathToFileURL(resolve(path)).href)
  const config = loadConfig({
    environment: process.env,
    set: args.set,
    ...(application.config && { application: application.config }),
    ...(args.config !== undefined && { file: args.config }),
  })
  const topology = application.compile({ optimize: config.get('topology.optimization') === 'all' })
  if (args.format === 'text') return describeText(topology)
  const { applicationId } = application
  return `${JSON.stringify({ applicationId, ...describeTopology(topology) }, undefined, 2)}\n`
}
