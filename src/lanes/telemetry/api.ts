/** The way to `@opentelemetry/api`, which only those install who want it. */
import type * as Api from '@opentelemetry/api'
import type { HeaderValue, Headers } from '../../broker/wire/headers.ts'
import { EngineError } from '../../base/errors.ts'

export type OtelApi = typeof Api

/** @throws EngineError `CONFIG_INVALID` where the package is not installed. */
export async function loadOtelApi(): Promise<OtelApi> {
  try {
    return await import('@opentelemetry/api')
  } catch (cause) {
    const message =
      'telemetry.opentelemetry is on, and the package @opentelemetry/api cannot be loaded: install it with an SDK, or turn it off'
    throw new EngineError('CONFIG_INVALID', message, { cause })
  }
}

interface Provider {
  getDelegate?(): Provider
  forceFlush?(): Promise<void>
}

/** What this thread has recorded leaves it. An SDK that is away costs no more than its own time limit. */
export async function flushSpans({ trace }: OtelApi): Promise<void> {
  const provider = trace.getTracerProvider() as Provider
  await (provider.getDelegate?.() ?? provider).forceFlush?.().catch(() => {
    // The SDK says by its own log that its collector is away.
  })
}

const text = (value: HeaderValue): string | undefined =>
  value === null ? undefined : typeof value === 'string' ? value : Buffer.from(value).toString()

/** Reads a context from the headers of a record. */
export const headerGetter: Api.TextMapGetter<Headers> = {
  keys: (headers) => headers.map(([name]) => name),
  get: (headers, key) => {
    const found = headers.find(([name]) => name === key)
    return found && text(found[1])
  },
}

/** The headers with a context in place of the one they had. */
export function withContext({ propagation }: OtelApi, context: Api.Context, headers: Headers): Headers {
  const carrier: Record<string, string> = {}
  propagation.inject(context, carrier)
  const names = Object.keys(carrier)
  if (names.length === 0) return headers
  return [
    ...headers.filter(([name]) => !names.includes(name)),
    ...names.map((name) => [name, carrier[name] as string] as const),
  ]
}
