/** What event time waits for, in words. */
import type { CompiledTopology } from '../topology/compiled.ts'
import type { PartitionWatermark, WatermarkSnapshot } from '../view/view.ts'

export interface Explained {
  readonly topology: CompiledTopology
  readonly watermarks: WatermarkSnapshot | null
  /** Rows that stores with windows hold, by store. */
  readonly windows: ReadonlyMap<string, number>
}

const shown = (ms: number): string => (Math.abs(ms) > 8.64e15 ? String(ms) : `${new Date(ms).toISOString()} (${ms})`)

export function explain({ topology, watermarks, windows }: Explained): string {
  if (watermarks === null) return 'The application has not started: nothing was fed yet.'
  const partitions = Object.entries(watermarks.partitions)
  if (partitions.length === 0) return 'The application reads no partition: it has no event time.'
  return [...timeOf(watermarks, partitions), ...heldWindows(windows, topology)].join('\n')
}

function timeOf(watermarks: WatermarkSnapshot, partitions: ReadonlyArray<[string, PartitionWatermark]>): string[] {
  const { globalMs, alignmentBinding } = watermarks
  const lines: string[] = []
  const silent = partitions.filter(([, p]) => p.watermarkMs === null && !p.idle)
  const fed = partitions.filter(([, p]) => p.watermarkMs !== null)
  if (globalMs !== null) lines.push(`Event time has come to ${shown(globalMs)}.`)
  else lines.push('Event time has not begun: it is that of the partition which is furthest behind.')
  if (silent.length > 0 && fed.length > 0) {
    const names = silent.map(([name]) => name).join(', ')
    const [holds, them] = silent.length === 1 ? ['holds', 'it'] : ['hold', 'them']
    lines.push(`${names} ${holds} event time, without a record so far: no window closes and no timer fires.`)
    lines.push(remedy(silent, them as string))
  } else if (silent.length > 0) {
    lines.push('No partition has had a record.')
  } else {
    lines.push(...behind(partitions))
  }
  if (alignmentBinding) {
    const { partition, group, emptyLaggards } = alignmentBinding
    const others = emptyLaggards.length > 0 ? `, which has nothing from ${emptyLaggards.join(', ')}` : ''
    lines.push(`${partition} waits for its alignment group ${group}${others}.`)
  }
  return lines
}

function remedy(silent: ReadonlyArray<[string, PartitionWatermark]>, them: string): string {
  const timeouts = silent.map(([, p]) => p.idlenessTimeoutMs)
  if (timeouts.every((ms) => ms > 0))
    return (
      `They are left out when they have been silent for ${Math.max(...timeouts)} ms: ` +
      `advanceWallClock(${Math.max(...timeouts)}), or feed ${them} a record.`
    )
  return (
    'Set `watermark.idleness-timeout` (or `watermark: { idleness }` of the source) so that silent partitions are left ' +
    `out, or feed ${them} a record; a topic with as many partitions as the test needs is given by ` +
    '`topics: { name: { partitions: 1 } }`.'
  )
}

/** The partitions that hold the others back, where some are further. */
function behind(partitions: ReadonlyArray<[string, PartitionWatermark]>): string[] {
  const counting = partitions.filter(([, p]) => !p.idle)
  const times = counting.map(([, p]) => p.watermarkMs as number)
  const [least, most] = [Math.min(...times), Math.max(...times)]
  if (!(most > least)) return []
  const last = counting.filter(([, p]) => p.watermarkMs === least).map(([name]) => name)
  const first = counting.filter(([, p]) => p.watermarkMs === most).map(([name]) => name)
  return [
    `${last.join(', ')} ${last.length === 1 ? 'is' : 'are'} furthest behind; ${first.join(', ')} at ${shown(most)}.`,
  ]
}

function heldWindows(windows: ReadonlyMap<string, number>, topology: CompiledTopology): string[] {
  const lines: string[] = []
  for (const [store, count] of windows) {
    if (count === 0) continue
    const node = topology.nodes.find((one) => one.stores.includes(store))
    const of = node && node.name !== store ? ` of ${node.name}` : ''
    lines.push(`The store ${store}${of} holds ${count} ${count === 1 ? 'window' : 'windows'}.`)
  }
  return lines
}
