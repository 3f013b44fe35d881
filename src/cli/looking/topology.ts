/** `millrace topology`: describes an application without running it. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { loadConfig } from '../../config/load.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { compilingOf, loadApplication } from '../../lanes/application.ts'
import { describeText, describeTopology } from '../../topology/describe.ts'
import { diffTopologies, type TopologyState, topologyState } from '../../topology/changes/diff.ts'

export interface TopologyArguments {
  readonly format: string
  /** Output of `--format json` of the application that runs now. */
  readonly diff?: string
  readonly config?: string
  readonly set: readonly string[]
}

export interface RenderedTopology {
  readonly text: string
  /** False when `--diff` found that the running state cannot be taken over. */
  readonly fits: boolean
}

export async function renderTopology(path: string, args: TopologyArguments): Promise<RenderedTopology> {
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
  const topology = application.compile(compilingOf(config))
  const { applicationId } = application
  const state = topologyState(topology)
  if (args.diff !== undefined) return renderDiff(args.diff, { applicationId, state }, args.format)
  if (args.format === 'text') return { text: describeText(topology), fits: true }
  const described = { applicationId, ...describeTopology(topology), state }
  return { text: `${JSON.stringify(described, undefined, 2)}\n`, fits: true }
}

interface Described {
  readonly applicationId: string
  readonly state: TopologyState
}

function renderDiff(file: string, now: Described, format: string): RenderedTopology {
  const before = readDescribed(file)
  const differences = [...diffTopologies(before.state, now.state)]
  if (before.applicationId !== now.applicationId) {
    const what = `the applicationId changes from ${before.applicationId} to ${now.applicationId}: offsets and changelogs go by it`
    differences.unshift({ level: 'breaks', what })
  }
  const fits = differences.every(({ level }) => level !== 'breaks')
  if (format === 'json') return { text: `${JSON.stringify({ fits, differences }, undefined, 2)}\n`, fits }
  const verdict = fits
    ? `${now.applicationId} can go on with the running state.`
    : `${now.applicationId} cannot go on with the running state.`
  const lines = differences.map(({ level, what }) => `${level.padEnd(6)}  ${what}`)
  return { text: `${[verdict, ...lines].join('\n')}\n`, fits }
}

function readDescribed(file: string): Described {
  let described: Partial<Described>
  try {
    described = JSON.parse(readFileSync(file, 'utf8')) as Partial<Described>
  } catch (error) {
    throw new EngineError('USAGE', `--diff: ${file} cannot be read as JSON: ${messageOf(error)}`, { cause: error })
  }
  const { applicationId, state } = described
  if (applicationId === undefined || !Array.isArray(state?.stores) || !Array.isArray(state.sources)) {
    throw new EngineError('USAGE', `--diff: ${file} is not the output of 'millrace topology --format json'.`)
  }
  return { applicationId, state: { ...state, repartitions: state.repartitions ?? [] } }
}
