/** The embedded registry as the configuration names it, and the folder that keeps its schemas. */
import { join, resolve } from 'node:path'
import { EngineError } from '../../base/errors.ts'
import type { RegistryContents } from '../../serde/registry/embedded-registry.ts'
import { KeptJsonFile } from '../kept-json.ts'

const prefix = 'embedded:'
/** Also of what the folder of the state keeps of another registry. */
export const schemasFile = 'schemas.json'

export function isEmbedded(url: string): boolean {
  return url === 'embedded' || url.startsWith(prefix)
}

export interface KeptSchemas {
  readonly file: KeptJsonFile
  /** Undefined where nothing was kept yet. */
  readonly contents: RegistryContents | undefined
}

/**
 * What lies in the folder that the address of an embedded registry names; undefined where it names none.
 *
 * @throws EngineError `SCHEMAS_DAMAGED` where the file is not what was written last.
 */
export function keptSchemas(url: string): KeptSchemas | undefined {
  const folder = url.slice(prefix.length)
  if (folder === '') return undefined
  const file = new KeptJsonFile(join(resolve(folder), schemasFile), { witnessed: true })
  const kept = file.read()
  if (kept.kind === 'damaged') throw damaged(file.path, kept.why)
  return { file, contents: kept.kind === 'whole' ? (kept.value as RegistryContents) : undefined }
}

/** Ids that are given out anew would have records read with schemas that are not theirs. */
function damaged(file: string, why: string): EngineError {
  return new EngineError(
    'SCHEMAS_DAMAGED',
    `The file ${file} of the embedded schema registry is damaged: ${why}. Nothing was changed. Restore it from a copy; without one, ` +
      'records that were written with its schemas cannot be told apart: give `schema-registry.url` a new folder, and begin with new topics.',
  )
}
