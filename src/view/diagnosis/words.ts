/** How times, records and partitions are told. */
import type { BrokerNode } from '../../broker/port.ts'
import type { RecordPlace } from './facts.ts'

export function lasting(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h`
  const days = Math.floor(hours / 24)
  return days < 730 ? `${days} days` : `${Math.floor(days / 365)} years`
}

export function recordName({ topic, partition, offset }: RecordPlace): string {
  return `${topic}/${partition} at offset ${offset}`
}

export function perSecond(rate: number): string {
  if (rate >= 10) return `${Math.round(rate)} records a second`
  if (rate >= 0.1) return `${rate.toFixed(1)} records a second`
  return rate === 0 ? 'none in the last seconds' : `${(rate * 60).toFixed(1)} records a minute`
}

export function listed(names: readonly string[], most = 5): string {
  if (names.length <= most) return names.join(', ')
  return `${names.slice(0, most).join(', ')} and ${names.length - most} more`
}

/** What the engine says of a commit that lanes kept waiting, in words that the guide explains. */
export function plainly(message: string): string {
  return message.replace(/\blanes ([\d, ]+) did not reach the barrier in time/, (_, lanes: string) => {
    const names = lanes.split(', ').map((lane) => `lane-${lane}`)
    return `${listed(names)} did not finish the records of a commit in time`
  })
}

/** `topic:3` as people write it. A topic's name may hold no colon. */
export function partitionName(key: string): string {
  return key.replace(/:(\d+)$/, '/$1')
}

/** The partition's topic and number. */
export function partitionPlace(key: string): { topic: string; partition: number } {
  const colon = key.lastIndexOf(':')
  return { topic: key.slice(0, colon), partition: Number(key.slice(colon + 1)) }
}

export function clockTime(atMs: number): string {
  return new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** `2 at kafka-2:9092`, or the address alone where its number is not known. */
export function nodeName({ id, address }: Pick<BrokerNode, 'id' | 'address'>): string {
  return id === null ? `at ${address}` : `${id} at ${address}`
}
