/**
 * Spans of a record's way through the operators of a task. A record is traced where its `traceparent` says that it is sampled,
 * or where a trace begins with it. What it writes and hands on carries the span that wrote it.
 */
import type { Context, Span, SpanContext, Tracer } from '@opentelemetry/api'
import type { LogFields } from '../../base/logger.ts'
import { isPromise, type Maybe, type Operator, type Origin, Rec, type Tracing } from '../../operators/contract.ts'
import type { CompiledNode } from '../../topology/compiled.ts'
import { headerGetter, type OtelApi, withContext } from './api.ts'

export interface RecordTracingOptions {
  readonly api: OtelApi
  readonly applicationId: string
  /** Of the records that came without a context: the share with which a trace begins. */
  readonly roots: number
  readonly random: () => number
}

const sampledFlag = 1

export class RecordTracing implements Tracing {
  readonly #o: RecordTracingOptions
  readonly #tracer: Tracer
  /** Traced records on this lane: while there are none, operators ask no further. */
  #live = 0
  readonly #traced = new WeakSet<Origin>()

  constructor(options: RecordTracingOptions) {
    this.#o = options
    this.#tracer = options.api.trace.getTracer('millrace')
  }

  around(operator: Operator, node: CompiledNode, isBoundary: boolean): Operator {
    switch (node.spec.op) {
      case 'source':
        return { process: (rec) => this.#enter(operator, node, isBoundary, rec) }
      case 'sink':
      case 'handOff':
        return { process: (rec) => this.#leave(operator, node, rec) }
      default:
        return { process: (rec) => this.#pass(operator, node, rec) }
    }
  }

  /** For the log: which trace the function at hand belongs to. */
  fields(): LogFields | undefined {
    if (this.#live === 0) return undefined
    const found = this.#o.api.trace.getActiveSpan()?.spanContext()
    return found && { trace_id: found.traceId, span_id: found.spanId }
  }

  #enter(operator: Operator, node: CompiledNode, isBoundary: boolean, rec: Rec): Maybe {
    const { api, applicationId } = this.#o
    const parent = this.#parentOf(rec, isBoundary)
    if (parent === undefined) {
      // Behind a promise of another record its context is still there.
      return this.#live === 0 ? operator.process(rec) : api.context.with(api.ROOT_CONTEXT, () => operator.process(rec))
    }
    const { topic, partition, offset } = rec.origin
    const attributes = {
      'messaging.system': 'kafka',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': topic,
      'messaging.destination.partition.id': String(partition),
      'messaging.kafka.offset': offset,
      'messaging.consumer.group.name': applicationId,
      'millrace.node': node.name,
      ...(rec.value === null && { 'messaging.kafka.message.tombstone': true }),
    }
    const span = this.#tracer.startSpan(`process ${topic}`, { kind: api.SpanKind.CONSUMER, attributes }, parent)
    if (!span.isRecording()) return operator.process(rec)
    this.#live++
    this.#traced.add(rec.origin)
    return this.#within(
      span,
      parent,
      () => operator.process(rec),
      () => this.#live--,
    )
  }

  #pass(operator: Operator, node: CompiledNode, rec: Rec): Maybe {
    if (this.#live === 0 || !this.#traced.has(rec.origin)) return operator.process(rec)
    const active = this.#o.api.context.active()
    const attributes = { 'millrace.operator': node.spec.op }
    const span = this.#tracer.startSpan(node.name, { attributes }, active)
    return this.#within(span, active, () => operator.process(rec))
  }

  #leave(operator: Operator, node: CompiledNode, rec: Rec): Maybe {
    if (this.#live === 0 || !this.#traced.has(rec.origin)) return operator.process(rec)
    const { api } = this.#o
    const active = api.context.active()
    const topic = node.spec.op === 'sink' && typeof node.spec.topic === 'string' ? node.spec.topic : undefined
    const attributes = {
      'messaging.system': 'kafka',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'millrace.node': node.name,
      ...(topic !== undefined && { 'messaging.destination.name': topic }),
    }
    const span = this.#tracer.startSpan(
      `send ${topic ?? node.name}`,
      { kind: api.SpanKind.PRODUCER, attributes },
      active,
    )
    const headers = withContext(api, api.trace.setSpan(active, span), rec.headers)
    const { key, value, timestamp, origin, keyRange, valueRange } = rec
    const sent = new Rec(key, value, timestamp, headers, origin, keyRange, valueRange)
    return this.#within(span, active, () => operator.process(sent))
  }

  /** Undefined: the record is not traced. */
  #parentOf(rec: Rec, isBoundary: boolean): Context | undefined {
    const { api, roots, random } = this.#o
    const found = rec.headers.some(([name]) => name === 'traceparent')
    if (!found) return !isBoundary && roots > 0 && random() < roots ? api.ROOT_CONTEXT : undefined
    const context = api.propagation.extract(api.ROOT_CONTEXT, rec.headers, headerGetter)
    const parent: SpanContext | undefined = api.trace.getSpanContext(context)
    return parent !== undefined && (parent.traceFlags & sampledFlag) !== 0 ? context : undefined
  }

  #within(span: Span, parent: Context, run: () => Maybe, over?: () => void): Maybe {
    const { api } = this.#o
    let pending: Maybe
    try {
      pending = api.context.with(api.trace.setSpan(parent, span), run)
    } catch (error) {
      this.#failed(span, error, over)
      throw error
    }
    if (!isPromise(pending)) {
      span.end()
      over?.()
      return undefined
    }
    return pending.then(
      () => {
        span.end()
        over?.()
      },
      (error) => {
        this.#failed(span, error, over)
        throw error
      },
    )
  }

  #failed(span: Span, error: unknown, over: (() => void) | undefined): void {
    const message = error instanceof Error ? error.message : String(error)
    span.recordException(error instanceof Error ? error : message)
    span.setStatus({ code: this.#o.api.SpanStatusCode.ERROR, message })
    span.end()
    over?.()
  }
}
