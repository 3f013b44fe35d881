/** What to do about the causes of restarts in place. */
import { errorTable, type ErrorCode } from '../../../base/errors.ts'
import type { Facts } from '../facts.ts'
import { isEmbedded, replicasCommand, setting, time } from './advice.ts'

type CauseFacts = Pick<Facts, 'broker' | 'settings'>

/** As Kafka names it where copies of a partition are missing. */
const tooFewCopies = /NOT_ENOUGH_REPLICAS/

/** As the engine tells what a lane was at: a call that is answered later, or a function that held the thread. */
function slowCall(cause: string): string {
  return /has waited .+ for the answer of/.test(cause)
    ? 'Check the system that this step calls (a database, a web service). The developers have to add a timeout to the call, or make it quicker'
    : 'The developers have to make the function quicker, or asynchronous where it waits. While it is in the function again, `/debug/threads` shows the line: save it for them. Where the function waits for another system, check that one; see whether this host is short of processor time; where it began with a new release, roll that back'
}

/** By the words of `src/runtime/engine/lane-end.ts`. */
function endedThread(cause: string): string {
  if (/ran out of memory/.test(cause))
    return 'the thread of a lane had no memory left. Give the process more of it; where it runs out again, the developers have to see what the functions of the application collect and never let go of'
  if (/in code of Millrace/.test(cause))
    return 'save the log of this process for the developers, who can send it to the maintainers of Millrace'
  if (/nobody handled the rejection of a promise/.test(cause))
    return 'the promise is of the application, or of a library that it uses, and belongs to no record: it was neither awaited nor returned by the function of a step, or it is of a task in the background, so no policy of `errors.processing` applies to it. Check the system that the error names. The log of this process has the stack of the error; the developers have to await or return the promise, or to handle its rejection (`catch`)'
  if (/nothing caught an error/.test(cause))
    return 'the error is of the application, or of a library that it uses, and came when no function of a step was at work: in a timer, a callback, or an `error` event that nobody listens to, as of a client of a database. Check the system that it names. The log of this process has the stack of the error; the developers have to handle it where it comes about'
  if (/with exit code/.test(cause))
    return 'the application, or a library that it uses, has ended the thread of a lane with `process.exit`. The developers have to throw an error there instead, or to leave the record to `errors.processing`'
  return 'a thread has ended. Save the log of this process for the developers, who can send it to the maintainers of Millrace'
}

const byCode: Readonly<Partial<Record<ErrorCode, (facts: CauseFacts, cause: string) => string>>> = {
  BARRIER_TIMEOUT: ({ settings }, cause) =>
    `a call of the application took longer than ${setting('commit-barrier.timeout-ms', time(settings?.laneTimeoutMs))} while a commit waited for it. ${slowCall(cause)}`,
  TRANSACTION_ABORTED: (facts, cause) =>
    tooFewCopies.test(cause)
      ? `bring back the brokers that have the missing copies of the topic: ${replicasCommand(facts, true)} shows the partitions that are short of them`
      : isEmbedded(facts.broker.address)
        ? 'look at the disk of the embedded broker’s folder: is it full, slow or faulty (`df -h`, `iostat -x`, `dmesg`)'
        : `look at the brokers: their logs, their load, their disks, and replicas that are out of sync (${replicasCommand(facts, false)})`,
  BROKER_UNREACHABLE: ({ broker }) =>
    `check from this host that the brokers can be reached, at ${broker.address}, and that they run`,
  STORE_CORRUPT: ({ settings }) =>
    `the engine sets the damaged files aside and rebuilds the store from its changelog by itself. Check the disk of ${setting('engine.state.dir', settings?.stateDir)} (\`dmesg\`, its SMART values): it gave back other bytes than were written`,
  LANE_FAILED: (_, cause) => endedThread(cause),
  GLOBAL_TABLE_LOST: () =>
    'see who deletes the records of the topic, or the topic: what a global table reads is best compacted, and not deleted by age or size',
  SCHEMA_UNAVAILABLE: () =>
    'check that the schema registry (`schema-registry.url`) runs and can be reached from this host',
}

function advice(code: string | undefined, cause: string, facts: CauseFacts): string {
  const own = Object.hasOwn(byCode, code ?? '') ? byCode[code as ErrorCode] : undefined
  if (own !== undefined) return own(facts, cause)
  const row = Object.hasOwn(errorTable, code ?? '') ? errorTable[code as ErrorCode] : undefined
  if (row === undefined || row.advice.startsWith('Nothing'))
    return 'look at what it names, and at the log of this process'
  return `${row.advice.charAt(0).toLowerCase()}${row.advice.slice(1).replace(/\.$/, '')}`
}

const most = 3

/** One piece of advice for each of the newest causes, with the number under which the sentence has it. */
export function causeAdvice(causes: readonly string[], codes: readonly string[], facts: CauseFacts): string {
  const told = new Map<string, number[]>()
  for (const [i, cause] of causes.slice(0, most).entries()) {
    const what = advice(codes[i], cause, facts)
    told.set(what, [...(told.get(what) ?? []), i + 1])
  }
  const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
  if (causes.length === 1) return [...told.keys()].map((what) => `${upper(what)}.`).join(' ')
  return [...told].map(([what, numbers]) => `About (${numbers.join('), (')}): ${what}.`).join(' ')
}
