/**
 * What comes into a deeper level, from every lane: put in the one order of all records, whichever lane they came from and
 * however long functions above have taken. A record is let through when every channel has told that nothing comes before
 * it any more. Tasks that take records as they arrive have a queue beside that.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import type { TransferReader } from '../transfer.ts'
import type { Work } from './level-state.ts'
import { type Frontier, isAhead, isBefore, type Place } from './place.ts'

/** Works of one channel that follow one another in the order of their records; the first one's reader stands at a record. */
interface Run {
  readonly channel: number
  readonly works: Work[]
  /** When each of them came. */
  readonly arrived: number[]
  /** The first work's, standing at the record that goes next. */
  reader: TransferReader
  last: Place
}

export interface Arrival {
  readonly type: 'work'
  readonly work: Work
  readonly isInOrder: boolean
  readonly isOrdered: boolean
  readonly last: Place
}

export interface Closing extends Frontier {
  readonly type: 'barrier'
  readonly epoch: CommitEpoch
  readonly sent: number
}

export interface Progress extends Frontier {
  readonly type: 'progress'
}

export type ChannelInput = Arrival | Closing | Progress

interface Channel {
  watermark: number
  seq: number
  /** The mark of the open epoch has come: nothing of this epoch comes any more. */
  isClosed: boolean
  received: number
  /** What came behind the mark. */
  readonly later: ChannelInput[]
}

const nothing: Frontier = { watermark: Number.NEGATIVE_INFINITY, seq: 0 }
const everything: Frontier = { watermark: Number.POSITIVE_INFINITY, seq: Number.POSITIVE_INFINITY }

export class OrderedInput {
  readonly #level: number
  readonly #channels: Channel[]
  readonly #runs: Run[] = []
  /** Works of tasks that take records as they arrive. */
  readonly #unordered: Work[] = []
  /** Counts what came. */
  #arrived = 0
  #closed = 0
  #closing: CommitEpoch = 0
  /** Up to here records may go. */
  #gate: Frontier = { watermark: Number.NEGATIVE_INFINITY, seq: 0 }
  /** Called for each work that comes into the open epoch. */
  readonly #received: (work: Work) => void

  constructor(level: number, channels: number, received: (work: Work) => void) {
    this.#level = level
    this.#received = received
    this.#channels = Array.from({ length: channels }, () => ({
      watermark: Number.NEGATIVE_INFINITY,
      seq: 0,
      isClosed: false,
      received: 0,
      later: [],
    }))
  }

  push(from: number, input: ChannelInput): void {
    const channel = this.#channels[from]
    assert(channel !== undefined, `level ${this.#level} has no channel from lane ${from}`)
    if (channel.isClosed) channel.later.push(input)
    else this.#take(from, channel, input)
  }

  /** Whether an epoch's last record was taken: all marks have come, and nothing is left before them. */
  get closing(): CommitEpoch {
    return this.#closed === this.#channels.length && this.isEmpty ? this.#closing : 0
  }

  get isEmpty(): boolean {
    return this.#runs.length === 0 && this.#unordered.length === 0
  }

  /** The epoch is closed here: what came behind its marks is let in. */
  open(): void {
    assert(this.#closed === this.#channels.length, `level ${this.#level} goes on before all its barriers have come`)
    assert(this.isEmpty, `level ${this.#level} goes on while records of the epoch before are left`)
    this.#closed = 0
    this.#closing = 0
    for (const channel of this.#channels) channel.isClosed = false
    this.#channels.forEach((channel, from) => {
      const later = channel.later.splice(0)
      for (const input of later) this.push(from, input)
    })
    this.#setGate()
  }

  /** How far every channel has told that it has come, whatever of it is still to be done. */
  get frontier(): Frontier {
    return this.#leastOf((channel) => channel)
  }

  /** The place before which everything is done: that of the next record, or the frontier where there is none before it. */
  get doneUpTo(): Frontier {
    if (this.#unordered.length > 0) return nothing
    const { frontier } = this
    const run = this.#first()
    if (run === undefined) return frontier
    const { at, seq } = run.reader
    if (at > frontier.watermark) return frontier
    // Timers of this level that are due with one of a shallower level come behind it.
    if (seq < 0) return { watermark: Math.min(at - 1, frontier.watermark), seq: frontier.seq }
    return { watermark: at, seq: at < frontier.watermark ? seq - 1 : Math.min(frontier.seq, seq - 1) }
  }

  /**
   * Takes records in their order, up to `budget` of them. `take` is given the work at whose record its reader stands,
   * `ended` the work that has none left. Stops when `stop` says so.
   */
  drain(
    budget: number,
    take: (work: Work) => void,
    prepare: (reader: TransferReader) => void,
    ended: (work: Work) => void,
    stop: () => boolean,
  ): number {
    let done = 0
    while (done < budget && !stop()) {
      if (this.#unordered.length > 0) {
        const work = this.#unordered[0] as Work
        take(work)
        done++
        prepare(work.reader)
        if (!work.reader.next()) {
          this.#unordered.shift()
          ended(work)
        }
        continue
      }
      const run = this.#first()
      if (run === undefined) break
      const count = this.#drainRun(run, this.#second(run), budget - done, take, prepare, ended, stop)
      if (count === 0) break
      done += count
    }
    return done
  }

  /** Takes records of one run as long as no other has an older one. */
  #drainRun(
    run: Run,
    until: Place | undefined,
    budget: number,
    take: (work: Work) => void,
    prepare: (reader: TransferReader) => void,
    ended: (work: Work) => void,
    stop: () => boolean,
  ): number {
    let done = 0
    let work = run.works[0] as Work
    while (done < budget && !stop()) {
      const { reader } = work
      if (!this.#passes(reader.at, reader.seq)) break
      if (done > 0 && until !== undefined && !isBefore(reader.at, reader.seq, reader.sub, until)) break
      take(work)
      done++
      prepare(reader)
      if (reader.next()) continue
      run.works.shift()
      run.arrived.shift()
      ended(work)
      const following = run.works[0]
      if (following === undefined) {
        this.#runs.splice(this.#runs.indexOf(run), 1)
        break
      }
      work = following
      run.reader = work.reader
    }
    return done
  }

  reset(watermark: number): void {
    for (const channel of this.#channels) {
      channel.watermark = watermark
      channel.seq = 0
      channel.isClosed = false
      channel.received = 0
      channel.later.length = 0
    }
    this.#runs.length = 0
    this.#unordered.length = 0
    this.#closed = 0
    this.#closing = 0
    this.#setGate()
  }

  #take(from: number, channel: Channel, input: ChannelInput): void {
    if (input.type === 'work') {
      this.#add(from, channel, input)
      this.#tell(channel, input.work)
    } else {
      if (input.type === 'barrier') this.#close(channel, input)
      this.#tell(channel, input)
    }
  }

  #tell(channel: Channel, { watermark, seq }: Frontier): void {
    if (isAhead(watermark, seq, channel)) {
      channel.watermark = watermark
      channel.seq = seq
    }
    this.#setGate()
  }

  #close(channel: Channel, { epoch, sent }: Closing): void {
    assert(channel.received === sent, `level ${this.#level}: ${sent} records were sent, ${channel.received} came`)
    assert(!channel.isClosed, `level ${this.#level}: the barrier of epoch ${epoch} came twice`)
    assert(this.#closing === 0 || this.#closing === epoch, `level ${this.#level} closes two epochs at once`)
    channel.received = 0
    channel.isClosed = true
    this.#closing = epoch
    this.#closed++
  }

  #add(from: number, channel: Channel, { work, isInOrder, isOrdered, last }: Arrival): void {
    channel.received += work.records
    this.#received(work)
    const { reader } = work
    if (isOrdered && !isInOrder) reader.sort()
    if (!reader.next()) return
    if (!isOrdered) {
      this.#unordered.push(work)
      return
    }
    const run = this.#runs.find(
      (each) => each.channel === from && !isBefore(reader.at, reader.seq, reader.sub, each.last),
    )
    const end = isInOrder ? last : reader.lastPlace
    const arrived = this.#arrived++
    if (run === undefined) this.#runs.push({ channel: from, works: [work], arrived: [arrived], reader, last: end })
    else {
      run.works.push(work)
      run.arrived.push(arrived)
      run.last = end
    }
  }

  #passes(at: number, seq: number): boolean {
    const { watermark } = this.#gate
    return at < watermark || (at === watermark && seq <= this.#gate.seq)
  }

  #setGate(): void {
    this.#gate = this.#closed === this.#channels.length ? everything : this.#leastOf(this.#open)
  }

  readonly #open = (channel: Channel): Frontier => (channel.isClosed ? everything : channel)

  #leastOf(of: (channel: Channel) => Frontier): Frontier {
    let least = everything
    for (const channel of this.#channels) {
      const frontier = of(channel)
      if (isAhead(least.watermark, least.seq, frontier)) least = frontier
    }
    // Channels move on.
    return { watermark: least.watermark, seq: least.seq }
  }

  /** The run whose record goes before all others'. */
  #first(): Run | undefined {
    const runs = this.#runs
    let first = runs[0]
    for (let i = 1; i < runs.length; i++) {
      const run = runs[i] as Run
      if (goesBefore(run, first as Run)) first = run
    }
    return first
  }

  /** Where the run has to let another one go first. */
  #second(run: Run): Place | undefined {
    let second: Run | undefined
    for (const other of this.#runs) {
      if (other !== run && (second === undefined || goesBefore(other, second))) second = other
    }
    return second?.reader
  }
}

function goesBefore(a: Run, b: Run): boolean {
  const mine = a.reader
  const theirs = b.reader
  if (isBefore(mine.at, mine.seq, mine.sub, theirs)) return true
  if (isBefore(theirs.at, theirs.seq, theirs.sub, mine)) return false
  // What passes on within a task for one record has one place; it is in the order in which it was sent.
  if (a.channel !== b.channel) return a.channel < b.channel
  return (a.arrived[0] as number) < (b.arrived[0] as number)
}
