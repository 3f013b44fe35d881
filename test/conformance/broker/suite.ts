/**
 * What every implementation of the broker port must do, as tests: the embedded broker and a real Kafka have to agree on
 * all of it. Names of topics, groups and transactional ids are made up anew, so that a broker may be shared.
 */
import { after, before, describe } from 'node:test'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { groupTests } from './group-tests.ts'
import { logTests } from './log-tests.ts'
import { offsetTests } from './offset-tests.ts'
import { topicTests } from './topic-tests.ts'
import { transactionTests } from './transaction-tests.ts'

export interface BrokerUnderTest {
  /** A further client, independent of the others as one of another process would be. */
  connect(): Promise<BrokerPort>
  close(): Promise<void>
}

export interface SuiteOptions {
  /** Why the suite cannot run here; it is reported as skipped. */
  readonly skip?: string | false
  /** The shortest session that the broker allows to a group's member. */
  readonly shortSessionMs?: number
}

export interface SuiteContext {
  /** Clients that live as long as the suite. */
  readonly one: BrokerPort
  readonly other: BrokerPort
  readonly shortSessionMs: number
}

/** Declares the suite; `makeBroker` is called once, before its first test. */
export function runBrokerSuite(
  name: string,
  makeBroker: () => Promise<BrokerUnderTest>,
  options: SuiteOptions = {},
): void {
  describe(`broker port: ${name}`, { skip: options.skip ?? false }, () => {
    let broker: BrokerUnderTest | undefined
    let clients: BrokerPort[] = []
    before(async () => {
      broker = await makeBroker()
      clients = [await broker.connect(), await broker.connect()]
    })
    after(async () => {
      for (const client of clients) await client.close()
      await broker?.close()
    })
    const context: SuiteContext = {
      get one() {
        return clients[0] as BrokerPort
      },
      get other() {
        return clients[1] as BrokerPort
      },
      shortSessionMs: options.shortSessionMs ?? 6000,
    }
    topicTests(context)
    logTests(context)
    transactionTests(context)
    offsetTests(context)
    groupTests(context)
  })
}
