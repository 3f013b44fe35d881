/** Receives what an exporter sends as OTLP over HTTP in JSON, and understands the part that tests look at. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string; readonly boolValue?: boolean }
}

export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly Attribute[]
  readonly events?: ReadonlyArray<{ readonly name: string }>
}

interface Message {
  readonly resourceSpans?: ReadonlyArray<{
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string }
      readonly spans: readonly OtlpSpan[]
    }>
  }>
  readonly resourceMetrics?: ReadonlyArray<{
    readonly scopeMetrics: ReadonlyArray<{ readonly metrics: ReadonlyArray<{ readonly name: string }> }>
  }>
}

export class Telemetry {
  readonly spans: OtlpSpan[] = []
  readonly metrics = new Set<string>()

  take(message: Message): void {
    for (const { scopeSpans } of message.resourceSpans ?? [])
      for (const { scope, spans } of scopeSpans) if (scope.name === 'millrace') this.spans.push(...spans)
    for (const { scopeMetrics } of message.resourceMetrics ?? [])
      for (const { metrics } of scopeMetrics) for (const { name } of metrics) this.metrics.add(name)
  }
}

export function attribute(span: OtlpSpan, key: string): string | undefined {
  const found = span.attributes.find((one) => one.key === key)?.value
  return found && String(found.stringValue ?? found.intValue ?? found.boolValue)
}

export async function startReceiver(into: Telemetry): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      into.take(JSON.parse(body) as Message)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
