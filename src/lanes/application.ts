/** Loads the application's module, on the control thread to describe it and in every lane to run it. */
import { fileURLToPath } from 'node:url'
import { type Application, isApplication } from '../dsl/app.ts'
import { EngineError, messageOf } from '../errors.ts'

/** @throws EngineError `APPLICATION_INVALID` in one sentence, whatever is wrong with the module. */
export async function loadApplication(url: string): Promise<Application> {
  const shown = url.startsWith('file:') ? fileURLToPath(url) : url
  let module: { readonly default?: unknown }
  try {
    module = (await import(url)) as { readonly default?: unknown }
  } catch (error) {
    if (EngineError.is(error)) throw error
    const code = (error as { code?: unknown }).code
    const missing = code === 'ERR_MODULE_NOT_FOUND' && messageOf(error).includes(shown)
    throw new EngineError(
      'APPLICATION_INVALID',
      missing
        ? `there is no application module ${shown}`
        : `the application module ${shown} cannot be loaded: ${firstLine(error)}`,
      { cause: error },
    )
  }
  if (!isApplication(module.default)) {
    throw new EngineError(
      'APPLICATION_INVALID',
      `the application module ${shown} does not export the result of defineApp as its default`,
    )
  }
  return module.default
}

function firstLine(error: unknown): string {
  return messageOf(error).split('\n', 1)[0] ?? ''
}
