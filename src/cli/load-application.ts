import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Application, isApplication } from '../dsl/app.ts'
import { EngineError, messageOf } from '../errors.ts'

/** Loads the module of an application. What is wrong with it is said in one sentence. */
export async function loadApplication(path: string): Promise<Application> {
  const file = resolve(path)
  if (!existsSync(file)) throw new EngineError('APPLICATION_INVALID', `The application '${path}' does not exist.`)
  let loaded: { readonly default?: unknown }
  try {
    loaded = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
  } catch (cause) {
    if (EngineError.is(cause)) throw cause
    const [message = ''] = messageOf(cause).split('\n')
    throw new EngineError('APPLICATION_INVALID', `The application '${path}' cannot be loaded: ${message}`, { cause })
  }
  if (!isApplication(loaded.default)) {
    throw new EngineError(
      'APPLICATION_INVALID',
      `The default export of '${path}' is no application; export the result of defineApp({ applicationId, build }).`,
    )
  }
  return loaded.default
}
