/**
 * Whether a pod of a changed application may take over from the one that runs. Pods tell what of their topology has to do
 * with state as a map of short texts: part → form. It answers what `millrace topology --diff` answers, for two pods of
 * which neither has the other's code.
 */
import { createHash } from 'node:crypto'
import { formOf, sourceId, type TopologyState } from '../topology/changes/diff.ts'
import type { LogView, Ran } from './log/log-view.ts'

/** Beyond this a name is told by its hash: what pods say of themselves every second is to stay small. */
const longestName = 100

export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

const part = (kind: string, name: string): string => `${kind} ${name.length > longestName ? shortHash(name) : name}`

export function shapeOf({ stores, sources, repartitions }: TopologyState): Record<string, string> {
  // Also where there is no state at all, a shape was told.
  const shape: Record<string, string> = { told: '' }
  for (const store of stores) shape[part('store', store.name)] = shortHash(JSON.stringify(formOf(store)))
  for (const source of sources) shape[part('source', sourceId(source))] = ''
  for (const topic of repartitions) shape[part('repartition', topic)] = ''
  return shape
}

interface Own {
  readonly topologyHash: string
  readonly topologyShape: ReadonlyMap<string, string>
}

/**
 * `fits`: it has all that runs, in the same form; what it has beside that begins empty. `lacks`: something would stand
 * still, or get a gap, and that is an operator's decision. `breaks`: rows would be misread.
 */
export type Fit = { readonly fit: 'fits' } | { readonly fit: 'lacks' | 'breaks'; readonly why: string }

const fits: Fit = { fit: 'fits' }

export function fitOf(view: Pick<LogView, 'ran' | 'abandoned'>, own: Own): Fit {
  const { ran } = view
  if (ran === undefined || ran.topologyHash === own.topologyHash || ran.topologyHash === '') return fits
  // A build that tells no shape: nobody can tell what would become of its state.
  if (ran.topologyShape.size === 0 || own.topologyShape.size === 0) {
    return { fit: 'lacks', why: `its topology is not that of pod ${ran.podId}, and one of the two does not tell more` }
  }
  return changed(ran, own) ?? missing(ran, own) ?? stale(view, own) ?? fits
}

function changed({ podId, topologyShape }: Ran, own: Own): Fit | undefined {
  const parts = [...topologyShape].filter(([each, form]) => (own.topologyShape.get(each) ?? form) !== form)
  if (parts.length === 0) return undefined
  const why = `it keeps the ${listed(parts)} in another form than pod ${podId}: give it a new name, or start over`
  return { fit: 'breaks', why }
}

function missing({ podId, topologyShape }: Ran, own: Own): Fit | undefined {
  const parts = [...topologyShape].filter(([each]) => !own.topologyShape.has(each))
  if (parts.length === 0) return undefined
  return { fit: 'lacks', why: `its application has no ${listed(parts)}, which that of pod ${podId} has` }
}

/** What it has more lay still while another application ran: it is not new, and has a gap. */
function stale({ abandoned }: Pick<LogView, 'abandoned'>, own: Own): Fit | undefined {
  const parts = [...abandoned].filter((each) => each.startsWith('store ') && own.topologyShape.has(each))
  if (parts.length === 0) return undefined
  const why = `the ${listed(parts.map((each) => [each]))} of its application has a gap: another one ran without it`
  return { fit: 'lacks', why }
}

function listed(parts: ReadonlyArray<readonly [string, ...unknown[]]>): string {
  const names = parts.slice(0, 3).map(([each]) => each)
  return parts.length > 3 ? `${names.join(', ')} and ${parts.length - 3} more` : names.join(', ')
}
