/** How advice names settings, commands and whoever has to act. */
import { type ErrorCode, errorTable } from '../../../base/errors.ts'
import type { Facts, RecordPlace } from '../facts.ts'
import { lasting } from '../words.ts'

/** `` `errors.processing` (now `fail`) ``; without the value where it is not known. */
export function setting(key: string, now?: string | number | null): string {
  if (now === undefined) return `\`${key}\``
  return now === null ? `\`${key}\` (now unset)` : `\`${key}\` (now ${now})`
}

export function time(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : ms === 0 ? 'off' : lasting(ms)
}

/** What Kafka’s own tools are started with. The embedded broker has no address that they could ask. */
export function bootstrap({ broker }: Pick<Facts, 'broker'>): string {
  return `--bootstrap-server ${/:\d/.test(broker.address) ? broker.address : '<broker>'}`
}

/** It has no address that could be asked, and lives in a process, most often in this one. */
export const isEmbedded = (address: string): boolean => address.startsWith('embedded:')

/** A broker in this process without a folder: its topics end with it. */
export const isInMemory = (address: string): boolean => address === 'embedded:'

const lostWithIt = 'the topics of its embedded broker are in memory, and a restart loses all that is in them.'
const notWithoutThem = `Do not restart the process without their word: ${lostWithIt}`

/** Where an embedded broker is to be looked at, and what a restart of its process costs. */
export function embeddedNext(address: string): string {
  const folder = address.slice('embedded:'.length)
  const own = 'This broker is a thread of this process, so there is no other machine to look at.'
  const save =
    'save the answer of GET `/debug/threads` (`millrace threads -o json`), which shows what the thread of the broker is at,'
  return isInMemory(address)
    ? `${own} Check whether this host is short of processor time (\`top\`, the CPU limit of the container). If the host is, move other work away from it, of which you know that it may be moved. If it is the container’s limit, call the developers: to raise it mostly starts the container again. If it is neither, ${save} and call the developers with it. ${notWithoutThem}`
    : `${own} Look at the disk of its folder ${folder}: is it full, slow or faulty (\`df -h\`, \`iostat -x\`, \`dmesg\`)? Delete nothing in that folder: it holds all topics. If the disk is all right, ${save} for the developers, and restart the process, which starts the broker again too.`
}

/** Said before a command that shows what records hold. */
export const showsContents = '(its contents are then on the screen)'

/** Reads the very record. */
export function readCommand(facts: Pick<Facts, 'broker'>, { topic, partition, offset }: RecordPlace, most = 1): string {
  return `\`kafka-console-consumer.sh ${bootstrap(facts)} --topic ${topic} --partition ${partition} --offset ${offset} --max-messages ${most}${most === 1 ? '' : ' --property print.key=true'}\``
}

/** Where it can be read from outside: Kafka's tools cannot ask an embedded broker. */
export function toRead(facts: Pick<Facts, 'broker'>, record: RecordPlace): string {
  return isEmbedded(facts.broker.address) ? '' : `To read the record ${showsContents}: ${readCommand(facts, record)}. `
}

const restartIsSafe =
  'A restart loses nothing: what is committed stays, and all other records are read again. Stores in memory are restored first, and calls to other systems are made again: what they do, such as a mail or a payment, may be done twice.'

/** As the guide says it, which knows no process. */
export const safeRestart = `Then, beside an embedded broker without a folder, call the developers: a restart loses its topics, which are in memory. Else restart the process. ${restartIsSafe}`

/** Of this process it is known whether a restart is safe. */
export function thenRestart({ broker }: Pick<Facts, 'broker'>): string {
  return isInMemory(broker.address)
    ? `Then call the developers. ${notWithoutThem}`
    : `Then restart the process. ${restartIsSafe}`
}

/** What a restart costs that was spoken of. */
export function restartCosts({ broker }: Pick<Facts, 'broker'>): string {
  return isInMemory(broker.address)
    ? `Call the developers before any restart of this process: ${lostWithIt}`
    : restartIsSafe
}

/** What follows needs a restart: said where that would lose more than it helps; empty where it is safe. */
export function restartWarning({ broker }: Pick<Facts, 'broker'>, what: string): string {
  return isInMemory(broker.address)
    ? ` ${what} restarts this process: call the developers before that, for ${lostWithIt}`
    : ''
}

const restartIsTheirs = `Do not restart this process, and change no setting or release (which restarts it), before the developers agree: ${lostWithIt}`

/** A restart, and what takes one: a release, a start, a setting. */
const takesRestart =
  /\brestart\b|\bstart (the|this) process\b|\brelease\b|\broll\w* .{0,20}\bback\b|`[a-z][\w-]*(\.[\w-]+)+`/i
const isWarned = /\bin memory, (unless|and)\b/

/** Where a restart loses the topics, advice that may lead to one begins with that. */
export function beforeAll({ broker }: Pick<Facts, 'broker'>, advice: string): string {
  const isDangerous = isInMemory(broker.address) && takesRestart.test(advice) && !isWarned.test(advice)
  return isDangerous ? `${restartIsTheirs} ${advice}` : advice
}

const whoActs = {
  user: 'Whoever develops or configures the application has to act.',
  external: 'Whoever operates what this process depends on has to act (brokers, network, disk, other processes).',
  internal: '',
} as const

/** What an error advises beside itself is what the finding's row does, with more to go by. */
export const withoutAdvice = (error: string): string =>
  error.replace(/; check `broker\.bootstrap-servers`.*$|; start the broker again\.?$/, '').replace(/\.$/, '')

/** Where a call hangs. */
export function saveThreads(thread: string): string {
  return `Save the answer of GET \`/debug/threads\` (\`millrace threads -o json\`): in it the stack of ${thread} shows the line that it is at, the innermost call first.`
}

/** Where all of Kafka's copies of a topic are short, and where some of them are. */
export function replicasCommand(facts: Pick<Facts, 'broker'>, isRefused: boolean): string {
  return `\`kafka-topics.sh ${bootstrap(facts)} --describe --${isRefused ? 'under-min-isr' : 'under-replicated'}-partitions\``
}

/** What the error's own row says, and whether a start anew helps. */
export function failureAdvice(code: string, restartHelps: boolean, facts: FailureFacts): string {
  if (code === 'STORE_AHEAD') return storeAheadAdvice(facts)
  if (code === 'TOPIC_MISSING') return topicMissingAdvice(facts)
  if (code === 'OFFSETS_MISSING') return offsetsMissingAdvice(facts)
  if (code === 'LANE_STUCK') return laneStuckAdvice(facts)
  const row = Object.hasOwn(errorTable, code) ? errorTable[code as ErrorCode] : undefined
  if (row === undefined) {
    return 'Save the log of this process for the developers, who have to act where it fails again in the same way. Then start the process again.'
  }
  const who = whoActs[row.domain]
  const start = restartHelps
    ? 'Then start the process again.'
    : 'Start the process again only after that, or it fails in the same way.'
  const advice = row.advice.replace('`engine.state.dir`', setting('engine.state.dir', facts.settings?.stateDir))
  return [who, advice, code === 'RESTARTS_EXHAUSTED' ? '' : start].filter((part) => part !== '').join(' ')
}

type FailureFacts = Pick<Facts, 'applicationId' | 'broker' | 'settings'>

function laneStuckAdvice(facts: FailureFacts): string {
  return `${saveThreads('the lane')} Do this before anything else: it is gone once the process ends, and the developers need it, for a function of the application did not return. Then start the process again: it reads the same records again. ${restartCosts(facts)} If a lane hangs again, only a corrected program helps, or the release before, where it began with a new one.`
}

function offsetsMissingAdvice(facts: FailureFacts): string {
  const look = `\`kafka-consumer-groups.sh ${bootstrap(facts)} --describe --group ${facts.applicationId}\``
  return [
    'Delete nothing, set no offsets by hand (`--reset-offsets` loses what the engine notes beside each), and keep the supervisor from starting the process again: it fails in the same way.',
    `The consumer group ${facts.applicationId} should know up to where this application has read: ${look} shows what it knows. Find out whether somebody deleted the group or its offsets, or whether they expired (\`offsets.retention.minutes\` of the brokers, against how long the application was down), and call the developers with that.`,
    'They decide whether to begin anew under another `applicationId`: all input is read again, and results are written again. (Where the sentence names a topic that was deleted, nothing is wrong with the offsets: somebody has made the topic again, and the state is of the old one. Where the sentence names `source.reset`, the offsets are there and the records are gone: then they decide whether to go on without those.) Start the process only once they have decided.',
  ].join(' ')
}

/** Whether it ever was there is not known here. */
function topicMissingAdvice(facts: FailureFacts): string {
  const servers = bootstrap(facts)
  return [
    'Look first whether the name is right, and whether somebody deleted the topic:',
    `\`kafka-topics.sh ${servers} --list\` shows those that are there, and \`kafka-consumer-groups.sh ${servers} --describe --group ${facts.applicationId}\` which partitions of which topics this application has read before. (That a topic is not among them does not prove that it never was there: its offsets may have been dropped with it. The developers know.)`,
    'A wrong name is for the developers to correct.',
    'A topic that was deleted was there with a number of partitions: give it the same one, and the same settings (`cleanup.policy`, `retention.ms`, the number of copies). Its records are gone, so ask whoever deleted it, and whoever writes it, before you make it anew and empty. The new one is read from its beginning, also where this process has gone on with what it had buffered of the old one; but where a store holds what was read of the old one, the start is refused with OFFSETS_MISSING, and the developers have to decide whether to begin anew.',
    `A changelog of this application (${facts.applicationId}-…-changelog) is not to be made by hand: the next start says what can be done without the rows that it held.`,
    'A topic that never was there needs as many partitions as the topics that the application joins it with, else at least as many as threads are to work on it (processes × `engine.lanes.count`): the developers know. To create it:',
    `\`kafka-topics.sh ${servers} --create --topic <topic> --partitions <number> --replication-factor <copies> --config cleanup.policy=<policy> --config retention.ms=<ms>\`.`,
    'Then start the process again; before that it fails in the same way. A number that does not fit its state or its other topics is refused then, and does no harm.',
  ].join(' ')
}

/**
 * Over changelogs that are newer than the offsets every record in between would count twice: the folder may go only where
 * they went back together.
 */
function storeAheadAdvice(facts: FailureFacts): string {
  const { applicationId: id, settings } = facts
  const folder = settings?.stateFolder ?? `<engine.state.dir>/${id}`
  const servers = bootstrap(facts)
  return [
    'Somebody or something has set the offsets of the consumer group back. Stop the process, and delete nothing before you know what else was set back: ask whoever runs Kafka.',
    `(1) The whole cluster was, topics and offsets together, as when it is restored from a copy: move the stores away, \`mv ${folder} ${folder}.old\`, and start the process again. It rebuilds them from their changelogs, and nothing counts twice. Do this in no other case: there it counts records twice.`,
    `(2) Only the offsets were, and the tool that did it can put them back as they were, with the metadata that the engine notes beside each: do that, and start the process again. (\`kafka-consumer-groups.sh --reset-offsets\` cannot: it loses the metadata.)`,
    `(3) Neither can be had, or nobody knows: begin anew, if the developers agree. All input that the topics still have is read from the beginning, and results are written again. Stop all processes, move the stores away as above, \`kafka-consumer-groups.sh ${servers} --delete --group ${id}\`, look at \`kafka-topics.sh ${servers} --list\`, and delete those topics that are named ${id}-…-changelog or ${id}-…-repartition, each by its full name, and no other application’s. Then start again.`,
  ].join(' ')
}
