/** A broken assertion is a bug of the engine, never of its user. */
export class AssertionFailure extends Error {
  override readonly name = 'AssertionFailure'
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailure(message)
}

/** For the end of an exhaustive `switch`. */
export function unreachable(value: never, what = 'value'): never {
  throw new AssertionFailure(`unexpected ${what}: ${JSON.stringify(value)}`)
}
