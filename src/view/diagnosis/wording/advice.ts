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

/** Reads the very record. */
export function readCommand(facts: Pick<Facts, 'broker'>, { topic, partition, offset }: RecordPlace, most = 1): string {
  return `\`kafka-console-consumer.sh ${bootstrap(facts)} --topic ${topic} --partition ${partition} --offset ${offset} --max-messages ${most}${most === 1 ? '' : ' --property print.key=true'}\``
}

export const safeRestart = 'A restart loses nothing: what is committed stays, and all other records are read again.'

const whoActs = {
  user: 'Whoever develops or configures the application has to act.',
  external: 'Whoever operates what this process depends on has to act (brokers, network, disk, other processes).',
  internal: '',
} as const

/** What the error's own row says, and whether a start anew helps. */
export function failureAdvice(code: string, restartHelps: boolean, settings: Facts['settings']): string {
  const row = Object.hasOwn(errorTable, code) ? errorTable[code as ErrorCode] : undefined
  if (row === undefined) return 'Save the log of this process for the developers, then start the process again.'
  const who = whoActs[row.domain]
  const start = restartHelps
    ? 'Then start the process again.'
    : 'Start the process again only after that, or it fails in the same way.'
  const advice = row.advice.replace('`engine.state.dir`', setting('engine.state.dir', settings?.stateDir))
  return [who, advice, code === 'RESTARTS_EXHAUSTED' ? '' : start].filter((part) => part !== '').join(' ')
}
