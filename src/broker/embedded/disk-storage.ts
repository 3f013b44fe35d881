import { BrokerError } from '../port.ts'
import type { Storage } from './core/storage.ts'

/** Opens the folder. */
export function openDiskStorage(folder: string, _options: { readonly fsync: boolean }): Storage {
  throw new BrokerError('UNSUPPORTED_VERSION', `The folder ${folder} cannot be used yet.`)
}
