/** What a running application shows of its data, and puts back of its dead letters. */
import { systemClock } from '../../base/clock.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { BrokerError, type BrokerPort } from '../../broker/port.ts'
import { type DataAccess, type DeadLetterFilter, isRefused, type Redriven, type Refused } from '../../http/data-seam.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { GroupPlaces } from '../../view/view.ts'
import { deadLetters } from './dead-letters.ts'
import { elsewhere } from './key-place.ts'
import { Patience, type Question } from './patience.ts'
import { redrive } from './redrive.ts'
import type { StorePages } from './store-queries.ts'
import { rowsOf } from './store-rows.ts'

export interface DataOptions {
  readonly deadLetterTopic: string
  readonly topology: () => CompiledTopology
  /** Undefined until it is opened. */
  readonly broker: () => BrokerPort | undefined
  /** A question to the broker is given up after so long without a word of it. */
  readonly patienceMs: number
  readonly store: (name: string) => StorePages
  /** Who has which task; undefined where one process has all of them. */
  readonly places: (() => GroupPlaces | null) | undefined
  readonly mask: (text: string) => string
}

export function dataAccess(options: DataOptions): DataAccess {
  const { deadLetterTopic, topology, broker, patienceMs, store, places, mask } = options
  const patience = new Patience(patienceMs)
  let line: Promise<unknown> = Promise.resolve()
  const asked = async <T>(question: Question<T>, next = () => 'retry later'): Promise<T | Refused> => {
    const port = broker()
    if (port === undefined) return { refused: 503, reason: 'there is no link to the broker yet; retry later' }
    try {
      return await patience.ask(port, question)
    } catch (error) {
      if (!(error instanceof BrokerError || isOfBroker(error))) throw error
      return { refused: 503, reason: `the broker did not do it: ${mask(messageOf(error))}; ${next()}` }
    }
  }
  const isSource = (topic: string): boolean =>
    topology().sources.some(
      ({ kind, topics, pattern }) => kind === 'topics' && (topics.includes(topic) || pattern?.test(topic) === true),
    )
  return {
    rows: async (name, question) => {
      const found = await rowsOf(topology().stores, store, name, question)
      // What is here is shown, whatever partitioner brought it; only where nothing is, another process may have it.
      if (isRefused(found) || found.rows.length > 0 || question.key === undefined || places === undefined) return found
      return elsewhere(topology(), places(), name, question.key) ?? found
    },
    deadLetters: (filter, limit) => asked((port) => deadLetters(port, deadLetterTopic, topology(), filter, limit)),
    redrive: (filter: DeadLetterFilter, how) => {
      const before = line
      let mayHaveWritten = false
      const work: Question<Redriven> = async (port, signal) => {
        // One after the other: a second one would fence the first.
        await before
        signal.throwIfAborted()
        const writing = (): void => {
          signal.throwIfAborted()
          mayHaveWritten = true
        }
        const now = (): number => systemClock.now()
        return redrive({ broker: port, deadLetterTopic, isSource, now, writing }, filter, how)
      }
      const result = asked(work, () =>
        mayHaveWritten
          ? 'letters may have been put back all the same; ask again, which puts none back twice'
          : 'nothing was put back; retry later',
      )
      line = result.catch(() => {
        // Whoever asked is told; the next one begins all the same.
      })
      return result
    },
  }
}

/** What was to be read could not be, and asking again may help. */
function isOfBroker(error: unknown): boolean {
  return EngineError.is(error) && (error.code === 'BROKER_UNREACHABLE' || error.code === 'BROKER_REFUSED')
}
