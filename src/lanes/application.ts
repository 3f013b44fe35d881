/** Loads the application's module, on the control thread to describe it and in every lane to run it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Application, isApplication } from '../dsl/app.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { thrownAt } from '../base/thrown-at.ts'
import type { Config } from '../config/config.ts'

/** What the configuration says of how an application is compiled: the same on every thread. */
export interface Compiling {
  readonly optimize: boolean
  readonly emit: 'on-update' | 'per-commit'
}

export function compilingOf(config: Config): Compiling {
  return { optimize: config.get('topology.optimization') === 'all', emit: config.get('topology.emit') }
}

/** @throws EngineError `APPLICATION_INVALID` in one sentence, whatever is wrong with the module. */
export async function loadApplication(url: string): Promise<Application> {
  const shown = url.startsWith('file:') ? fileURLToPath(url) : url
  let module: Exports
  try {
    module = await imported(url, shown)
  } catch (error) {
    if (EngineError.is(error)) throw error
    const code = (error as { code?: unknown }).code
    // The module that is not there, not the one that wants it.
    const wanted = code === 'ERR_MODULE_NOT_FOUND' ? notFound.exec(messageOf(error)) : null
    const missing = wanted?.[1] === shown
    throw new EngineError(
      'APPLICATION_INVALID',
      missing
        ? `there is no application module ${shown}`
        : `the application module ${shown} cannot be loaded: ${firstLine(error)}${placeOf(error)}${extensionHint(wanted?.[1])}`,
      { cause: error },
    )
  }
  // A compiler that writes CommonJS has its default export as a member of what Node.js takes for the default.
  const own = module.default
  const application = isApplication(own) ? own : (own as Exports | null | undefined)?.default
  if (!isApplication(application)) {
    throw new EngineError(
      'APPLICATION_INVALID',
      `the application module ${shown} does not export the result of defineApp as its default`,
    )
  }
  return application
}

interface Exports {
  readonly default?: unknown
}

/** Where nothing is left that could settle an `await`, the process would end behind it without a word. */
async function imported(url: string, shown: string): Promise<Exports> {
  const { promise: never, reject } = Promise.withResolvers<never>()
  const isStuck = (): void =>
    reject(
      new EngineError(
        'APPLICATION_INVALID',
        `the application module ${shown} was never loaded: it waits with \`await\` for a promise that nothing is left to settle; let it wait only for what ends`,
      ),
    )
  process.once('beforeExit', isStuck)
  try {
    return await Promise.race([import(url) as Promise<Exports>, never])
  } finally {
    process.off('beforeExit', isStuck)
  }
}

const notFound = /^Cannot find (?:module|package) '([^']+)'/

/** Node wants whole file names in imports. */
function extensionHint(missing: string | undefined): string {
  if (missing === undefined) return ''
  const found = ['.ts', '.mts', '.js', '.mjs'].find((extension) => existsSync(missing + extension))
  return found === undefined ? '' : `; ${missing}${found} is there: the import has to end with ${found}`
}

/** File and line. Of a slip in TypeScript's syntax Node puts them above the stack. */
function placeOf(error: unknown): string {
  const above = error instanceof SyntaxError ? /^[^\n]*?([^/\\\n]+:\d+)\n/.exec(error.stack ?? '') : null
  const place = above?.[1] ?? thrownAt(error)
  return place === undefined ? '' : ` (${place})`
}

function firstLine(error: unknown): string {
  return messageOf(error).split('\n', 1)[0] ?? ''
}
