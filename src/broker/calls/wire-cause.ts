/** What brought an error about, as plain data: the errors of a library may hold what no message takes. */

export interface WireCause {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: string
  readonly cause?: WireCause
}

const deepest = 8

/** Undefined where nothing is known. */
export function toWireCause(error: unknown, depth = 0): WireCause | undefined {
  if (error === undefined || error === null || depth === deepest) return undefined
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const { name, message, stack } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const cause = toWireCause(error.cause ?? (error instanceof AggregateError ? error.errors[0] : undefined), depth + 1)
  return {
    name,
    message,
    ...(stack !== undefined && { stack }),
    ...(code !== undefined && { code }),
    ...(cause !== undefined && { cause }),
  }
}

export function fromWireCause({ name, message, stack, code, cause }: WireCause): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause: fromWireCause(cause) })
  error.name = name
  if (stack !== undefined) error.stack = stack
  return code === undefined ? error : Object.assign(error, { code })
}
