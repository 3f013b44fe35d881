/** An application: its identity and the function that builds its topology. */
import { EngineError } from '../base/errors.ts'
import type { ConfigInput } from '../config/config-input.ts'
import type { CompileOptions } from '../topology/compile.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { compile, type Topology } from './topology.ts'

const mark = Symbol.for('millrace.Application')

/** What an application is made of. */
export interface ApplicationDefinition {
  /**
   * Names the consumer group and all that the application keeps on the broker: 1 to 200 letters, digits, ".", "_" and
   * "-". With another id it is another application, which begins anew.
   */
  readonly applicationId: string
  /**
   * Describes the topology. It is called on the control thread and in every lane, and must do the same each time: it
   * may not depend on anything that changes. It gives no promise; the module awaits what it needs before `defineApp`.
   */
  readonly build: (topology: Topology) => void
  /** Configuration by dotted key, or nested. Everything but the defaults overrides it. */
  readonly config?: ConfigInput
}

/** A declared application, the result of `defineApp`. */
export interface Application extends ApplicationDefinition {
  /**
   * Builds the topology anew and compiles it.
   *
   * @throws EngineError `TOPOLOGY_INVALID` when the topology cannot run; the message says what to change.
   */
  compile(options?: CompileOptions): CompiledTopology
}

/**
 * Declares an application; export the result as the default of its module.
 *
 * @example
 * export default defineApp({
 *   applicationId: 'word-count',
 *   build(topology) {
 *     topology
 *       .stream('lines', { value: serdes.string })
 *       .flatMapValues((line) => line.split(' '))
 *       .groupBy((word) => word)
 *       .count({ store: 'words' })
 *       .toStream()
 *       .to('word-counts')
 *   },
 * })
 * @throws EngineError `APPLICATION_INVALID` when the id or the build function is missing or malformed.
 */
export function defineApp(definition: ApplicationDefinition): Application {
  const { applicationId, build } = definition ?? {}
  if (typeof applicationId !== 'string' || !/^[a-zA-Z0-9._-]{1,200}$/.test(applicationId)) {
    throw new EngineError(
      'APPLICATION_INVALID',
      `applicationId is ${JSON.stringify(applicationId)}; give 1 to 200 letters, digits, ".", "_" or "-".`,
    )
  }
  if (typeof build !== 'function')
    throw new EngineError('APPLICATION_INVALID', `The application ${applicationId} has no build function.`)
  const application: Application = {
    ...definition,
    compile: (options) => compile(build, { applicationId, ...options }),
  }
  Object.defineProperty(application, mark, { value: true })
  return application
}

/** Whether a value is the result of `defineApp`, that of another copy of the package included. */
export function isApplication(value: unknown): value is Application {
  return typeof value === 'object' && value !== null && mark in value
}
