/**
 * Random scripts of three processes that compete for one transactional id. What each call answers, and what is committed
 * in the end, must not depend on which broker it is.
 */
import { Random } from '../../../src/base/random.ts'
import { BrokerError, type BrokerPort } from '../../../src/broker/port.ts'
import { newTopic, outsider, Producer, unique, valuesOf } from './support.ts'

export interface ScriptResult {
  /** One entry a call: who did what, and `ok` or the class of the error. */
  readonly calls: readonly string[]
  readonly committed: readonly string[]
  readonly offset: number
}

const steps = 20

export async function runTransactionScript(clients: readonly BrokerPort[], seed: number): Promise<ScriptResult> {
  const random = new Random(seed)
  const first = clients[0] as BrokerPort
  const topic = await newTopic(first)
  const [id, group] = [unique('tx'), unique('group')]
  const producers: Array<Producer | undefined> = []
  const sent: boolean[] = []
  const calls: string[] = []
  for (let step = 0; step < steps; step++) {
    const who = random.int(clients.length)
    const client = clients[who] as BrokerPort
    const what = chosen(random.next(), producers[who] !== undefined)
    // The end of a transaction in which nothing was sent is none of the broker's business.
    if ((what === 'commit' || what === 'abort') && !sent[who]) continue
    sent[who] = what === 'send' || what === 'offsets'
    const call = async (): Promise<void> => {
      const producer = producers[who]
      if (producer === undefined || what === 'take') producers[who] = await Producer.start(client, id)
      else if (what === 'retake') producers[who] = await Producer.start(client, id, producer.identity)
      else if (what === 'send') await producer.send(topic, [`${step}`])
      else if (what === 'offsets') {
        await producer.sendOffsets(outsider(group), [{ topic, partition: 0, offset: step, metadata: '' }])
      } else await producer.end(what === 'commit')
    }
    calls.push(`${who} ${what}: ${await outcomeOf(call())}`)
  }
  // Whatever is open is aborted.
  await Producer.start(first, id)
  const [offset] = await first.committedOffsets(group, [{ topic, partition: 0 }], true)
  return { calls, committed: await valuesOf(first, topic), offset: offset?.offset ?? -1 }
}

function chosen(x: number, holds: boolean): 'take' | 'retake' | 'send' | 'offsets' | 'commit' | 'abort' {
  if (!holds || x < 0.12) return 'take'
  if (x < 0.27) return 'retake'
  if (x < 0.6) return 'send'
  if (x < 0.7) return 'offsets'
  return x < 0.9 ? 'commit' : 'abort'
}

async function outcomeOf(call: Promise<void>): Promise<string> {
  try {
    await call
    return 'ok'
  } catch (error) {
    if (error instanceof BrokerError) return error.errorClass
    throw error
  }
}
