/** Feeds are sent one after the other; a run that ends with them takes all at once, whichever feed comes first. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineCommands, EngineView, LifecycleState } from '../../view/view.ts'

/** Of a start or a restart in place: a pause, and its end, are refused in them and possible behind them. */
const passingStates: ReadonlySet<LifecycleState> = new Set(['CREATED', 'STARTING', 'RESTORING', 'RESTARTING'])
const pollMs = 10
const who = '`millrace run`, which sends all of its feeds first,'

interface Held {
  readonly view: Pick<EngineView, 'state'>
  readonly commands: EngineCommands
}

/** Resolves once nothing is let in; with undefined where that cannot be, else with the way back. */
export async function holdInput(held: Held, signal: AbortSignal): Promise<(() => Promise<void>) | undefined> {
  const isHeld = await untilDone(() => held.commands.pause(who).ok, held, signal)
  if (!isHeld) return undefined
  return async () => {
    await untilDone(() => held.commands.unpause().ok, held, signal)
  }
}

/** False where the state is one that refuses it for good. */
async function untilDone(isDone: () => boolean, { view }: Held, signal: AbortSignal): Promise<boolean> {
  while (!isDone()) {
    if (signal.aborted || !passingStates.has(view.state().current)) return false
    await sleep(pollMs)
  }
  return true
}
