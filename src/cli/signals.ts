/** What the shell answers for a process that one of them ended. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

type StopSignal = keyof typeof exitCodes
const stopSignals = Object.keys(exitCodes) as StopSignal[]

/** Commands that end in order when they are told to: of all others a signal is the end. */
const orderly: ReadonlySet<string | undefined> = new Set(['run', 'dev', 'demo'])

/** Waits for the signal, and for somebody who can end in order. */
class StopSignals {
  #came: StopSignal | undefined
  #stop: ((signal: StopSignal) => void) | undefined
  readonly #handlers = stopSignals.map((signal) => [signal, (): void => this.#on(signal)] as const)

  constructor() {
    for (const [signal, handler] of this.#handlers) process.on(signal, handler)
  }

  told(stop: (signal: StopSignal) => void): void {
    this.#stop = stop
    if (this.#came !== undefined) stop(this.#came)
  }

  dispose(): void {
    for (const [signal, handler] of this.#handlers) process.off(signal, handler)
  }

  #on(signal: StopSignal): void {
    if (this.#came !== undefined) endAtOnce(signal)
    this.#came = signal
    this.#stop?.(signal)
  }
}

/** `process.exit` waits for all threads, and one that is in the midst of a write to its store may never end. */
function endAtOnce(signal: StopSignal): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // The first process of a container is not ended by a signal that it does not handle.
  process.exit(exitCodes[signal])
}

let early: StopSignals | undefined

/**
 * Of a command that ends in order, keeps a signal that comes while it is being loaded. The first process of a container has no
 * other chance to hear of it: without a handler its signals are dropped.
 */
export function keepEarlySignals(command: string | undefined): void {
  if (orderly.has(command)) early = new StopSignals()
}

/** The first signal asks for an orderly end, the second one ends at once. One that has come already asks at once. */
export function onStopSignal(stop: (signal: StopSignal) => void): { dispose(): void } {
  // The same handlers: a signal that is on its way to some that go is lost.
  const signals = early ?? new StopSignals()
  early = undefined
  signals.told(stop)
  return signals
}
