import type { EngineView } from '../view/view.ts'
import { grouped, type ProgressLine } from './progress.ts'

const everyMs = 200

/** Shows on a terminal how far the restoring of state has come. */
export class RestoreProgressLine {
  readonly #timer: NodeJS.Timeout | undefined
  #shown = false

  constructor(view: EngineView, progress: ProgressLine) {
    if (progress.enabled) this.#timer = setInterval(() => this.#show(view, progress), everyMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #show(view: EngineView, progress: ProgressLine): void {
    const { current, restore } = view.state()
    if (current !== 'RESTORING' || restore.length === 0) {
      if (this.#shown) progress.clear()
      this.#shown = false
      return
    }
    const restored = restore.reduce((sum, store) => sum + store.restoredRecords, 0)
    const remaining = restore.reduce((sum, store) => sum + store.remainingRecords, 0)
    const percent = restored + remaining === 0 ? 100 : Math.floor((100 * restored) / (restored + remaining))
    const stores = new Set(restore.map((store) => store.store)).size
    const noun = stores === 1 ? 'store' : 'stores'
    progress.show(`restoring ${stores} ${noun}: ${percent} %, ${grouped(remaining)} records left`)
    this.#shown = true
  }
}
