import { readFileSync } from 'node:fs'
import { EngineError, messageOf } from './errors.ts'

/**
 * The file that a configuration key names.
 * @throws EngineError `CONFIG_INVALID` where it is missing or cannot be read.
 */
export function readNamedFile(key: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new EngineError('CONFIG_INVALID', `${key} cannot be read: ${messageOf(cause)}`, { cause })
  }
}
