import { readFileSync } from 'node:fs'
import { EngineError } from '../../base/errors.ts'
import { inspectLicense } from '../../license/inspect.ts'

export interface InspectArguments {
  /** File of the keys that signatures are checked with. */
  readonly publicKeys?: string
}

/** The text about a key; `@file` reads it from a file, so that it does not stay in the shell's history. */
export async function inspect(key: string, { publicKeys }: InspectArguments): Promise<string> {
  const token = key.startsWith('@') ? readFileOf('key', key.slice(1)).trim() : key
  return await inspectLicense(token, {
    nowMs: Date.now(),
    ...(publicKeys !== undefined && { publicKeys: readFileOf('public keys', publicKeys) }),
  })
}

function readFileOf(what: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new EngineError('USAGE', `The file '${file}' of the ${what} cannot be read (${code}); name one that can.`, {
      cause,
    })
  }
}
