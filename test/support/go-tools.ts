/** Tools that `scripts/go-tools.ts` builds, as tests find them. */
import { existsSync } from 'node:fs'
import { type GoTool, toolPath } from '../../scripts/go-tools.ts'

/** Where it is, or a sentence for a test that is skipped without it. */
export function goTool(name: GoTool): { readonly path: string; readonly missing: string | false } {
  const path = toolPath(name)
  return {
    path,
    missing: existsSync(path) ? false : `${name} is not built: node scripts/go-tools.ts ${name} (needs Go)`,
  }
}
