/** The codecs are packages that an application installs where it uses them. */
import { createRequire } from 'node:module'
import { EngineError } from '../../base/errors.ts'

const require = createRequire(import.meta.url)

/** The module, loaded at its first use. */
export function optionalPackage<T>(specifier: string, what: string): T {
  try {
    return require(specifier) as T
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw cause
    const name = specifier.startsWith('@') ? specifier.split('/', 2).join('/') : (specifier.split('/')[0] as string)
    throw new EngineError(
      'APPLICATION_INVALID',
      `${what} needs the package ${name}, which is not installed: run "npm install ${name}"`,
      { cause },
    )
  }
}
