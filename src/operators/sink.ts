/** Where records leave a task: to a topic, or over a boundary. */
import { assert } from '../base/assert.ts'
import type { ByteRange } from '../base/byte-range.ts'
import { EngineError } from '../base/errors.ts'
import { string } from '../serde/primitive.ts'
import type { Serde } from '../serde/serde.ts'
import { transientUtf8 } from '../serde/short-text.ts'
import type { KnownSerdes } from '../topology/serdes/known-serdes.ts'
import { nameFault } from '../topology/names.ts'
import type { SpecOf } from '../topology/operator-spec.ts'
import type { Windowed } from '../state/contract.ts'
import { type Downstream, isPromise, type Maybe, type Rec } from './contract.ts'
import { NodeOperator, type OperatorEnv } from './node-operator.ts'

abstract class EncodingOperator extends NodeOperator {
  readonly #keySerde: Serde<unknown>
  readonly #valueSerde: Serde<unknown>
  readonly #windowedInner: Serde<unknown> | undefined

  constructor(
    env: OperatorEnv,
    children: Downstream,
    spec: {
      readonly keySerde: Serde<unknown>
      readonly valueSerde: Serde<unknown>
      readonly windowedInner: Serde<unknown> | undefined
    },
  ) {
    super(env, children)
    this.#keySerde = spec.keySerde
    this.#valueSerde = spec.valueSerde
    this.#windowedInner = spec.windowedInner
  }

  /** Valid until the next record, as the value. */
  protected key(rec: Rec): Uint8Array | null {
    const { key } = rec
    if (key === null || key === undefined) return null
    if (this.#keySerde === string && typeof key === 'string' && key.isWellFormed()) return transientUtf8(key)
    return this.#encode(this.#keySerde, rec.key, 'key', rec)
  }

  /** Valid until the next record: whoever is given it copies it. */
  protected value(rec: Rec): Uint8Array | null {
    if (rec.value === null || rec.value === undefined) {
      // Nobody may take what was not read for nothing.
      assert(rec.value === null || !rec.valueRange, 'a value that is to be written was not read')
      return null
    }
    return this.#encode(this.#valueSerde, rec.value, 'value', rec)
  }

  /** Windowed keys are partitioned by what is inside. */
  protected partitionKey(rec: Rec): Uint8Array | undefined {
    const inner = this.#windowedInner
    if (inner === undefined || rec.key === null || rec.key === undefined) return undefined
    return this.#encode(inner, (rec.key as Windowed<unknown>).key, 'key', rec)
  }

  #encode(serde: Serde<unknown>, data: unknown, what: 'key' | 'value', rec: Rec): Uint8Array {
    try {
      return what === 'value' && serde.serializeTransient ? serde.serializeTransient(data) : serde.serialize(data)
    } catch (error) {
      throw this.#encodingFailed(error, serde, what, rec)
    }
  }

  #encodingFailed(error: unknown, serde: Serde<unknown>, what: 'key' | 'value', rec: Rec): EngineError {
    const { topic, partition, offset } = rec.origin
    const message = error instanceof Error ? error.message : String(error)
    return new EngineError(
      'PRODUCE_FAILED',
      `${this.name} could not encode the ${what} made from the record ${topic}/${partition} at offset ${offset} with the serde ${serde.name}: ${message}`,
      { cause: error, node: this.name, topic, partition, offset },
    )
  }
}

export class SinkOperator extends EncodingOperator {
  readonly #topic: SpecOf<'sink'>['topic']
  /** A name as it should be. */
  #lastChosen: string | undefined
  readonly #reuseKey: boolean
  readonly #reuseValue: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'sink'>, known: KnownSerdes) {
    super(env, children, spec)
    this.#topic = spec.topic
    this.#reuseKey = known.key === spec.keySerde
    this.#reuseValue = known.value === spec.valueSerde
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (typeof this.#topic === 'string') return this.#send(this.#topic, rec)
    const topic = this.#topic(rec.value, rec.key, rec)
    if (isPromise(topic)) return this.#sendLater(topic, rec)
    return this.#send(this.#chosen(topic, rec), rec)
  }

  /** Apart, so that no scope is made for the closure where the topic is known at once. */
  #sendLater(topic: PromiseLike<unknown>, rec: Rec): Maybe {
    return this.later(topic, rec, (name) => this.#send(this.#chosen(name, rec), rec))
  }

  #send(topic: string, rec: Rec): void {
    const key = this.#reuseKey && rec.keyRange !== undefined ? undefined : this.key(rec)
    const value = this.#reuseValue && rec.valueRange !== undefined ? view(rec.valueRange) : this.value(rec)
    this.context.emit(topic, key, value, rec, this.partitionKey(rec))
  }

  /** One record's answer is not to fail the write of all others: a broker takes no other name. */
  #chosen(answer: unknown, rec: Rec): string {
    if (typeof answer !== 'string') throw this.#noName(answer, rec)
    if (answer === this.#lastChosen) return answer
    if (nameFault(answer) !== undefined) throw this.#noName(answer, rec)
    this.#lastChosen = answer
    return answer
  }

  #noName(answer: unknown, rec: Rec): EngineError {
    const { topic, partition, offset } = rec.origin
    return new EngineError(
      'PRODUCE_FAILED',
      `The function of ${this.name} that chooses the topic answered ${JSON.stringify(answer)}; it must answer the name of a topic: 1 to 249 letters, digits, ".", "_" and "-".`,
      { node: this.name, topic, partition, offset },
    )
  }
}

export class HandOffOperator extends EncodingOperator {
  readonly #spec: SpecOf<'handOff'>
  readonly #reuseKey: boolean
  readonly #reuseValue: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'handOff'>, known: KnownSerdes) {
    super(env, children, spec)
    this.#spec = spec
    this.#reuseKey = known.key === spec.keySerde
    this.#reuseValue = known.value === spec.valueSerde
  }

  process(rec: Rec): Maybe {
    this.enter()
    const key = this.#reuseKey && rec.keyRange !== undefined ? view(rec.keyRange) : this.key(rec)
    const value = this.#reuseValue && rec.valueRange !== undefined ? undefined : this.value(rec)
    this.context.handOff(
      this.#spec.boundary,
      key,
      value,
      rec,
      this.#spec.toPartition?.(rec.value) ?? this.partitionKey(rec),
    )
  }
}

function view(range: ByteRange | null): Uint8Array | null {
  return range === null ? null : range.view()
}
