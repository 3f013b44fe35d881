/** What the shell answers for a process that a signal ended. */
const exitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/** The first signal asks for an orderly end, the second one ends at once. */
export function onStopSignal(stop: (signal: keyof typeof exitCodes) => void): { dispose(): void } {
  let asked = false
  const handlers = (Object.keys(exitCodes) as Array<keyof typeof exitCodes>).map((signal) => {
    const handler = (): void => {
      if (asked) process.exit(exitCodes[signal])
      asked = true
      stop(signal)
    }
    process.on(signal, handler)
    return [signal, handler] as const
  })
  return {
    dispose(): void {
      for (const [signal, handler] of handlers) process.off(signal, handler)
    },
  }
}
