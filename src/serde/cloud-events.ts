/** CloudEvents 1.0 in Kafka's binary mode: the event's data is the value, its attributes are headers. */
import type { Headers } from '../broker/wire/headers.ts'
import { SerdeError } from './serde.ts'

/**
 * What a CloudEvent says about its data. Other members are extension attributes, whose names have lower-case letters and
 * digits only.
 */
export interface CloudEvent {
  /** With `source` unique to the event. */
  readonly id: string
  /** Where it happened: a URI reference. */
  readonly source: string
  /** What happened, as in `com.acme.order.paid`. */
  readonly type: string
  /** Default: `1.0`. */
  readonly specversion?: string
  /** Of which thing of the source it tells. */
  readonly subject?: string
  /** When it happened, as RFC 3339 has it: `2026-01-31T12:00:00Z`. */
  readonly time?: string
  /** The media type of the value: the header `content-type`. */
  readonly datacontenttype?: string
  /** Where the schema of the value lies. */
  readonly dataschema?: string
  readonly [extension: string]: string | undefined
}

const prefix = 'ce_'
const contentType = 'content-type'
const required = ['id', 'source', 'type'] as const
const nameOfAttribute = /^[a-z0-9]+$/
const utf8 = new TextDecoder()

/**
 * CloudEvents 1.0 in the binary mode of Kafka: the data of an event is the record's value, whatever its serde, and its
 * attributes are headers of the record.
 */
export const cloudEvents = {
  /**
   * The attributes of a record's event; undefined where the record carries none: one of `id`, `source`, `type` and
   * `specversion` is missing.
   *
   * @example
   * orders
   *   .filter((order, key, record) => cloudEvents.read(record.headers)?.type === 'com.acme.order.paid')
   *   .to('paid')
   */
  read(headers: Headers): CloudEvent | undefined {
    const event: Record<string, string> = Object.create(null)
    for (const [name, value] of headers) {
      if (value === null) continue
      const lower = name.toLowerCase()
      const attribute =
        lower === contentType ? 'datacontenttype' : lower.startsWith(prefix) ? lower.slice(prefix.length) : ''
      if (attribute !== '') event[attribute] = typeof value === 'string' ? value : utf8.decode(value)
    }
    if (event.specversion === undefined || required.some((name) => event[name] === undefined)) return undefined
    return { ...event } as unknown as CloudEvent
  },

  /**
   * The headers of a record that is an event. `others` go along; what is left of an event in them is replaced. A `SerdeError` is
   * thrown where `id`, `source` or `type` is missing, or a name is none of an attribute.
   *
   * @example
   * orders
   *   .process<string, Order>((context) => (order, key, record) => {
   *     const event = { id: order.id, source: '/shop', type: 'com.acme.order.paid', datacontenttype: 'application/json' }
   *     return context.forward(key, order, { headers: cloudEvents.write(event, record.headers) })
   *   })
   *   .to('paid')
   */
  write(event: CloudEvent, others: Headers = []): Headers {
    for (const name of required)
      if (!event[name]) throw new SerdeError(`A CloudEvent has ${required.join(', ')}; this one has no ${name}.`)
    const headers: Array<readonly [string, string]> = []
    for (const [name, value] of Object.entries({ specversion: '1.0', ...event })) {
      if (value === undefined) continue
      if (!nameOfAttribute.test(name) || name === 'data')
        throw new SerdeError(
          `'${name}' is no name of a CloudEvent's attribute: it takes lower-case letters and digits.`,
        )
      headers.push([name === 'datacontenttype' ? contentType : prefix + name, value])
    }
    return [...others.filter(([name]) => !isOfEvent(name)), ...headers]
  },
} as const

function isOfEvent(name: string): boolean {
  const lower = name.toLowerCase()
  return lower === contentType || lower.startsWith(prefix)
}
