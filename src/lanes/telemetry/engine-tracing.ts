/** Spans of what the engine does for many records at once: polls that brought some, and commits. */
import type { Attributes, Tracer } from '@opentelemetry/api'
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import type { OtelApi } from './api.ts'

export interface EngineTracingOptions {
  readonly api: OtelApi
  readonly applicationId: string
  /** The share of polls and commits that are traced. */
  readonly roots: number
  readonly random: () => number
  /** Epoch milliseconds. */
  readonly now: () => number
}

/** A commit that has taken effect, and how long its steps took. */
export interface TracedCommit {
  readonly epoch: number
  readonly trigger: string
  readonly durationsMs: Readonly<Record<string, number>>
}

export class EngineTracing {
  readonly #o: EngineTracingOptions
  readonly #tracer: Tracer

  constructor(options: EngineTracingOptions) {
    this.#o = options
    this.#tracer = options.api.trace.getTracer('millrace')
  }

  /** The same broker, with a span for each poll that brought something. */
  around(broker: BrokerPort): BrokerPort {
    return new Proxy(broker, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (name === 'fetch') return (request: Parameters<BrokerPort['fetch']>[0]) => this.#poll(target, request)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }

  commit({ epoch, trigger, durationsMs }: TracedCommit): void {
    const end = this.#o.now()
    const steps = Object.entries(durationsMs)
    const start = end - steps.reduce((sum, [, ms]) => sum + ms, 0)
    const attributes = { 'millrace.epoch': epoch, 'millrace.trigger': trigger }
    const span = this.#start('commit', 'settle', attributes, start)
    if (span === undefined) return
    let at = start
    for (const [step, ms] of steps) {
      at += ms
      span.addEvent(step, { 'millrace.duration_ms': ms }, at)
    }
    span.end(end)
  }

  async #poll(broker: BrokerPort, request: Parameters<BrokerPort['fetch']>[0]): Promise<FetchedPartition[]> {
    const start = this.#o.now()
    const fetched = await broker.fetch(request)
    const full = fetched.filter(({ records }) => records.length > 0)
    if (full.length > 0) {
      const bytes = full.reduce((sum, { records }) => sum + records.length, 0)
      const topics = new Set(full.map(({ topic }) => topic))
      const [only] = topics
      const attributes = {
        'messaging.batch.partitions': full.length,
        'messaging.message.body.size': bytes,
        ...(topics.size === 1 && only !== undefined && { 'messaging.destination.name': only }),
      }
      this.#start('poll', 'receive', attributes, start)?.end(this.#o.now())
    }
    return fetched
  }

  #start(name: string, type: string, attributes: Attributes, startTime: number) {
    const { api, applicationId, roots, random } = this.#o
    if (roots === 0 || random() >= roots) return undefined
    const all = {
      'messaging.system': 'kafka',
      'messaging.operation.name': name,
      'messaging.operation.type': type,
      'messaging.consumer.group.name': applicationId,
      ...attributes,
    }
    const options = { kind: api.SpanKind.CLIENT, attributes: all, startTime }
    return this.#tracer.startSpan(name, options, api.ROOT_CONTEXT)
  }
}
