/** What a partition remembers of a producer: its epoch and its last batches, to tell repeats from gaps. */
import { assert } from '../../../base/assert.ts'
import { type BatchHeader, batchHeader, CorruptBatchError } from '../../wire/record-batch.ts'
import { BrokerError, type ProducerIdentity } from '../../port.ts'

const remembered = 5
const sequences = 2 ** 31

interface WrittenBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly baseOffset: number
}

export class ProducerState {
  epoch: number
  lastSequence = -1
  batches: readonly WrittenBatch[] = []

  constructor(epoch: number) {
    this.epoch = epoch
  }

  clone(): ProducerState {
    const copy = new ProducerState(this.epoch)
    copy.lastSequence = this.lastSequence
    copy.batches = this.batches
    return copy
  }

  record(header: BatchHeader, baseOffset: number): void {
    assert(header.producerEpoch >= this.epoch, `producer ${header.producerId} wrote under an epoch that is over`)
    if (header.producerEpoch !== this.epoch) this.batches = []
    this.epoch = header.producerEpoch
    this.lastSequence = lastSequenceOf(header)
    const batch = { firstSequence: header.baseSequence, lastSequence: this.lastSequence, baseOffset }
    this.batches = [...this.batches.slice(1 - remembered), batch]
  }

  /** A transaction marker of a newer epoch fences the older ones, and sequences begin anew. */
  marked(epoch: number): void {
    if (epoch <= this.epoch) return
    this.epoch = epoch
    this.lastSequence = -1
    this.batches = []
  }
}

function lastSequenceOf(header: BatchHeader): number {
  return (header.baseSequence + (header.lastOffset - header.baseOffset)) % sequences
}

/** The offset that the batch has already, if it is a repeat; undefined if it is next in order; throws otherwise. */
export function admit(state: ProducerState | undefined, header: BatchHeader): number | undefined {
  if (state === undefined) return undefined
  if (header.producerEpoch < state.epoch) {
    throw new BrokerError(
      'INVALID_PRODUCER_EPOCH',
      `Producer ${header.producerId} writes under epoch ${header.producerEpoch}, but epoch ${state.epoch} has taken over.`,
    )
  }
  if (header.producerEpoch > state.epoch) {
    if (header.baseSequence !== 0) throw outOfOrder(header, 0)
    return undefined
  }
  const last = lastSequenceOf(header)
  for (const batch of state.batches) {
    if (batch.firstSequence === header.baseSequence && batch.lastSequence === last) return batch.baseOffset
  }
  const next = state.lastSequence === sequences - 1 ? 0 : state.lastSequence + 1
  if (header.baseSequence !== next) throw outOfOrder(header, next)
  return undefined
}

function outOfOrder(header: BatchHeader, expected: number): BrokerError {
  return new BrokerError(
    'OUT_OF_ORDER_SEQUENCE_NUMBER',
    `Producer ${header.producerId} sent sequence ${header.baseSequence} where ${expected} was next: a batch in between is lost or repeated.`,
  )
}

/** Who has written these batches. */
export function identityIn(records: Uint8Array): ProducerIdentity {
  try {
    const { producerId, producerEpoch } = batchHeader(records)
    return { producerId, producerEpoch }
  } catch (error) {
    if (error instanceof CorruptBatchError) throw new BrokerError(error.code, error.message, undefined, error)
    throw error
  }
}
