/**
 * Loaded before anything else in every process and thread of the tests (`test/run.ts`): a module of the repository is found by
 * its name alone, and is had without its types where `test/strip.ts` has taken them out already. A third of what the start of
 * an engine costs, and the tests start thousands. In JavaScript, for a thread that strips nothing need not load what strips.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'

const root = new URL('..', import.meta.url).href
const stripped = process.env.TEST_STRIPPED
const source = /^(?:src|test|conformance)\/.*\.ts$/

/**
 * The path of a source in the repository; undefined: anything else that is imported.
 * @param {string} url
 */
function pathOf(url) {
  if (!url.startsWith(root)) return undefined
  const query = url.indexOf('?')
  const path = decodeURIComponent(url.slice(root.length, query === -1 ? undefined : query))
  return source.test(path) ? path : undefined
}

if (stripped !== undefined) {
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL } = context
      const isRelative = specifier.startsWith('.') && parentURL?.startsWith(root)
      const url = isRelative ? new URL(specifier, parentURL).href : specifier
      return pathOf(url) === undefined ? next(specifier, context) : { url, format: 'module', shortCircuit: true }
    },
    load(url, context, next) {
      const path = context.format === 'module' ? pathOf(url) : undefined
      if (path === undefined) return next(url, context)
      try {
        return { format: 'module', source: readFileSync(join(stripped, path)), shortCircuit: true }
      } catch {
        return next(url, { ...context, format: 'module-typescript' })
      }
    },
  })
}
