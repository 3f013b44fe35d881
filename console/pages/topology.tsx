import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { useAsk } from '../ask/live.ts'
import type { Finding, Flow, KsTopology, Offsets, Topology as Shape, Why } from '../ask/model.ts'
import { placed } from '../graph/layout.ts'
import { dotOf, type Graph, graphOf, type GraphNode, lagOf, mermaidOf, moodOf, rateOf } from '../graph/model.ts'
import { Picture } from '../graph/picture.tsx'
import { number } from '../parts/format.ts'
import { CopyButton, Panel } from '../parts/panel.tsx'

/** The topology itself does not change while the process runs. */
const seldomMs = 60_000

export function TopologyPage({ chosenNode }: { chosenNode: string | null }): JSX.Element {
  const described = useAsk<KsTopology>('/topology/ks', seldomMs)
  const shape = useAsk<Shape>('/topology', seldomMs)
  const graph = useMemo(
    () => (described.value && shape.value ? graphOf(described.value, shape.value) : undefined),
    [JSON.stringify(described.value), JSON.stringify(shape.value)],
  )
  return (
    <Panel title="Topology" path="/topology/ks" kept={described} wide>
      {graph !== undefined && <GraphView graph={graph} chosenNode={chosenNode} />}
    </Panel>
  )
}

function GraphView({ graph, chosenNode }: { graph: Graph; chosenNode: string | null }): JSX.Element {
  const flow = useAsk<Flow>('/flow').value
  const offsets = useAsk<Offsets>('/offsets').value
  const findings = useAsk<Why>('/why').value?.findings ?? []
  const places = useMemo(() => placed(graph), [graph])
  const [search, setSearch] = useState('')
  const [picked, setPicked] = useState<string | null>(null)
  const chosen = picked ?? graph.nodes.find(({ name }) => name === chosenNode)?.id ?? null
  const wanted = search.trim().toLowerCase()
  const isFound = ({ name, stores }: GraphNode): boolean =>
    wanted === '' || [name, ...stores].some((text) => text.toLowerCase().includes(wanted))
  const node = graph.nodes.find(({ id }) => id === chosen)
  return (
    <>
      <p class="actions">
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        {wanted !== '' && <span role="status">{graph.nodes.filter(isFound).length} found</span>}
        <CopyButton label="Copy as Mermaid" text={mermaidOf(graph)}>
          Mermaid
        </CopyButton>
        <CopyButton label="Copy as DOT" text={dotOf(graph)}>
          DOT
        </CopyButton>
      </p>
      <Picture
        placed={places}
        moodOf={(each) => moodOf(each, flow, findings)}
        rateOf={(each) => rateOf(each, flow)}
        lagOf={(each) => lagOf(each, offsets)}
        isFound={isFound}
        chosen={chosen}
        choose={setPicked}
      />
      {node === undefined ? (
        <p class="calm">Choose a node to read about it.</p>
      ) : (
        <Drawer node={node} graph={graph} flow={flow} findings={findings} />
      )}
    </>
  )
}

interface DrawerProps {
  readonly node: GraphNode
  readonly graph: Graph
  readonly flow: Flow | undefined
  readonly findings: readonly Finding[]
}

function Drawer({ node, graph, flow, findings }: DrawerProps): JSX.Element {
  const names = new Map(graph.nodes.map(({ id, name }) => [id, name]))
  const into = graph.edges.filter(({ to }) => to === node.id).map(({ from }) => names.get(from))
  const onward = graph.edges.filter(({ from }) => from === node.id).map(({ to }) => names.get(to))
  const counted = flow?.nodes.find(({ node: name }) => name === node.name)
  const lanes = flow?.lanes.filter(({ node: at }) => at === node.name) ?? []
  const here = findings.filter(({ place }) => place.node === node.name || place.topic === node.name)
  return (
    <section class="drawer" aria-label={`About ${node.name}`} aria-live="polite">
      <h3>{node.name}</h3>
      <dl>
        <dt>Is a</dt>
        <dd>
          {node.kind === 'boundary' ? 'boundary inside the process' : node.kind}
          {node.subtopology === null ? '' : ` of sub-topology ${node.subtopology}`}
        </dd>
        <dt>From</dt>
        <dd>{into.join(', ') || 'nothing'}</dd>
        <dt>To</dt>
        <dd>{onward.join(', ') || 'nothing'}</dd>
        {node.stores.length > 0 && <dt>Stores</dt>}
        {node.stores.length > 0 && (
          <dd>
            {node.stores.map((store) => (
              <a key={store} href={`#/stores?store=${encodeURIComponent(store)}`}>
                {store}{' '}
              </a>
            ))}
          </dd>
        )}
        {counted !== undefined && <dt>Records</dt>}
        {counted !== undefined && (
          <dd>
            {number(counted.records)}, {number(counted.recordsPerSecond)}/s; by lane{' '}
            {counted.byLane.map((rate) => number(rate)).join(', ')}
          </dd>
        )}
        {lanes.length > 0 && <dt>Lanes that are here</dt>}
        {lanes.length > 0 && <dd>{lanes.map(({ lane }) => lane).join(', ')}</dd>}
      </dl>
      {here.map(({ code, sentence, place }) => (
        <p key={code} class="stale">
          <b>{code}</b> {sentence}
          {typeof place.function === 'string' && (
            <>
              {' '}
              Function: <code>{place.function}</code>
            </>
          )}
        </p>
      ))}
    </section>
  )
}
