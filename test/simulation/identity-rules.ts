/**
 * What a process may ask of the broker, by the identity that it has. The broker refuses much of the rest, and a start makes up
 * for what is not refused, so that no result shows it: these rules look at the calls themselves.
 */
import type { ProducerIdentity, ProduceRequest } from '../../src/broker/port.ts'
import type { Tamper } from './faulty-broker.ts'

/** Of the format of record batches. */
const producerIdAt = 43
const producerEpochAt = 51

/** Watches the calls of one process. */
export class IdentityRules {
  readonly #violate: (what: string) => void
  #newest: ProducerIdentity | undefined
  /** It is asking for its identity at the moment. */
  #taking = 0
  /** Its run is over, and the next one has not begun to take it. */
  #isOver = false
  /** Nobody saw how a transaction ended, and the identity was not taken since: it may still end in either way. */
  #undecided = false
  /** Offsets were sent with the open transaction. One without any decides nothing about them: changelogs that are written anew. */
  #hasOffsets = false

  constructor(violate: (what: string) => void) {
    this.#violate = violate
  }

  /** Sees what goes to the broker, and lets it pass. */
  watching(tamper?: Tamper): Tamper {
    return async (name, args, call, other) => {
      const pass = (): Promise<unknown> => (tamper ? tamper(name, args, call, other) : call(args))
      if (name === 'initProducer') return this.#take(pass)
      if (name === 'produce') this.#produces(args[0] as ProduceRequest)
      if (name === 'commitOffsetsInTransaction' || name === 'endTransaction')
        this.#uses(args[1] as ProducerIdentity, name)
      if (name === 'commitOffsetsInTransaction') this.#hasOffsets = true
      if (name === 'committedOffsets' && args[2] === true && this.#undecided)
        this.#violate('what became of a transaction is asked before its identity was taken again')
      try {
        return await pass()
      } catch (error) {
        if (name === 'endTransaction') this.#undecided = this.#hasOffsets
        throw error
      } finally {
        if (name === 'endTransaction') this.#hasOffsets = false
      }
    }
  }

  /** The engine starts over. */
  restarting(): void {
    this.#isOver = true
  }

  async #take(pass: () => Promise<unknown>): Promise<unknown> {
    this.#taking++
    this.#isOver = false
    try {
      const identity = (await pass()) as ProducerIdentity
      this.#newest = identity
      this.#undecided = false
      this.#hasOffsets = false
      return identity
    } finally {
      this.#taking--
    }
  }

  #produces({ transactionalId, batches }: ProduceRequest): void {
    if (transactionalId === null) return
    if (this.#isOver) this.#violate('produce is called for a run that is over')
    for (const { records } of batches) {
      const view = new DataView(records.buffer, records.byteOffset)
      const identity = { producerId: view.getBigInt64(producerIdAt), producerEpoch: view.getInt16(producerEpochAt) }
      this.#uses(identity, 'produce')
    }
  }

  /** A run that ended asks for nothing more: the next one takes the identity before it does anything else. */
  #uses({ producerId, producerEpoch }: ProducerIdentity, name: string): void {
    if (this.#taking > 0) this.#violate(`${name} is called while the process takes its identity`)
    const newest = this.#newest
    if (newest?.producerId === producerId && producerEpoch < newest.producerEpoch)
      this.#violate(`${name} is called with the epoch ${producerEpoch}, and the process has ${newest.producerEpoch}`)
  }
}
