/** An application: its identity and the function that builds its topology. */
import { EngineError } from '../errors.ts'
import type { CompileOptions } from '../topology/compile.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { compile, type Topology } from './topology.ts'

const mark = Symbol.for('millrace.Application')

export interface ApplicationDefinition {
  /** Names the consumer group and everything the application keeps on the broker. */
  readonly applicationId: string
  /** Called on the control thread, to describe, and in every lane, to run: it must do the same each time. */
  readonly build: (topology: Topology) => void
  /** Configuration by dotted key; the weakest source after the defaults. */
  readonly config?: Readonly<Record<string, unknown>>
}

export interface Application extends ApplicationDefinition {
  /** Builds the topology anew and compiles it. */
  compile(options?: CompileOptions): CompiledTopology
}

/**
 * Declares an application; export the result as the module's default.
 *
 * @example
 * export default defineApp({
 *   applicationId: 'word-count',
 *   build(topology) {
 *     topology.stream('lines').flatMapValues((line) => String(line).split(' ')).groupBy((word) => word).count()
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

/** True for the result of `defineApp`, also of another copy of the package. */
export function isApplication(value: unknown): value is Application {
  return typeof value === 'object' && value !== null && mark in value
}
