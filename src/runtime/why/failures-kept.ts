/** What earlier runs of the process failed at: kept beside the stores, so that a process started anew can tell. */
import { join } from 'node:path'
import { KeptJsonFile } from '../kept-json.ts'
import type { EngineFailure } from '../../view/view.ts'
import type { EarlierFailure } from '../../view/diagnosis/facts.ts'

const kept = 20
const longestMessage = 500

export class KeptFailures {
  readonly #file: KeptJsonFile | null
  #list: readonly EarlierFailure[]

  /** `folder`: null where the application keeps nothing on disk; then only this run's are known. */
  constructor(folder: string | null) {
    this.#file = folder === null ? null : new KeptJsonFile(join(folder, 'last-failures.json'))
    this.#list = this.#file === null ? [] : read(this.#file)
  }

  /** Newest first. */
  get list(): readonly EarlierFailure[] {
    return this.#list
  }

  add({ code, message, record }: EngineFailure, atMs: number): void {
    const failure = { atMs, code, message: message.slice(0, longestMessage), ...(record && { record }) }
    this.#list = [failure, ...this.#list].slice(0, kept)
    if (this.#file === null) return
    try {
      this.#file.write(this.#list)
    } catch {
      // A disk that is full may be the very failure: then only this run knows of it.
    }
  }
}

function read(file: KeptJsonFile): readonly EarlierFailure[] {
  try {
    const found = file.read()
    const list: unknown = found.kind === 'whole' ? found.value : undefined
    return Array.isArray(list) ? list.filter(isFailure).slice(0, kept) : []
  } catch {
    // It cannot be read: nothing is known.
    return []
  }
}

function isFailure(value: unknown): value is EarlierFailure {
  const { atMs, code, message, record } = (value ?? {}) as Partial<EarlierFailure>
  if (typeof atMs !== 'number' || typeof code !== 'string' || typeof message !== 'string') return false
  return record === undefined || (typeof record === 'object' && typeof record?.topic === 'string')
}
