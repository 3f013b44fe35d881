import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { number } from '../parts/format.ts'
import { type Placed, shortened } from './layout.ts'
import type { GraphNode, Mood } from './model.ts'

interface PictureProps {
  readonly placed: Placed
  readonly moodOf: (node: GraphNode) => Mood
  readonly rateOf: (node: GraphNode) => number | undefined
  readonly lagOf: (node: GraphNode) => number | undefined
  readonly isFound: (node: GraphNode) => boolean
  readonly chosen: string | null
  readonly choose: (id: string) => void
}

const zooms = [0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5]

export function Picture(props: PictureProps): JSX.Element {
  const { placed, chosen } = props
  const [zoom, setZoom] = useState(placed.nodes.length > 60 ? 2 : 4)
  const scale = zooms[zoom] ?? 1
  return (
    <div class="graph">
      <p class="tools">
        <button type="button" aria-label="Smaller" disabled={zoom === 0} onClick={() => setZoom(zoom - 1)}>
          −
        </button>
        <span>{Math.round(scale * 100)} %</span>
        <button
          type="button"
          aria-label="Larger"
          disabled={zoom === zooms.length - 1}
          onClick={() => setZoom(zoom + 1)}
        >
          +
        </button>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="canvas" tabIndex={0} aria-label="Graph of the topology">
        <svg
          width={placed.width * scale}
          height={placed.height * scale}
          viewBox={`0 0 ${placed.width} ${placed.height}`}
          aria-label={`${placed.nodes.length} nodes`}
        >
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0L8 4L0 8z" />
            </marker>
          </defs>
          {placed.edges.map(({ id, path }) => (
            <path key={id} class="edge" d={path} marker-end="url(#tip)" />
          ))}
          {placed.nodes.map((at) => (
            <Node key={at.node.id} at={at} isChosen={chosen === at.node.id} picture={props} />
          ))}
        </svg>
      </section>
    </div>
  )
}

const moodWords: Readonly<Record<Mood, string>> = {
  stuck: 'held up here',
  held: 'held',
  hot: 'busy',
  calm: '',
}

function Node(props: { at: Placed['nodes'][number]; isChosen: boolean; picture: PictureProps }): JSX.Element {
  const { at, isChosen, picture } = props
  const { node, x, y, width, height } = at
  const mood = picture.moodOf(node)
  const [rate, lag] = [picture.rateOf(node), picture.lagOf(node)]
  const told = [
    node.kind,
    ...(rate === undefined ? [] : [`${number(rate)}/s`]),
    ...(lag === undefined ? [] : [`lag ${number(lag)}`]),
    ...(mood === 'calm' ? [] : [moodWords[mood]]),
  ].join(' · ')
  const choose = (event: Event): void => {
    if (event instanceof KeyboardEvent && event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    picture.choose(node.id)
  }
  const classes = ['node', node.kind, mood, isChosen ? 'chosen' : '', picture.isFound(node) ? '' : 'faint']
  return (
    // biome-ignore lint/a11y/useSemanticElements: a button cannot lie within a picture
    <g
      class={classes.join(' ')}
      role="button"
      tabindex={0}
      aria-pressed={isChosen}
      transform={`translate(${x} ${y})`}
      onClick={choose}
      onKeyDown={choose}
    >
      {shortened(node.name) !== node.name && <title>{node.name}</title>}
      <rect width={width} height={height} rx={node.kind === 'topic' ? 20 : node.kind === 'boundary' ? 12 : 4} />
      <text x={width / 2} y={19}>
        {shortened(node.name)}
      </text>
      <text class="small" x={width / 2} y={36}>
        {told}
      </text>
    </g>
  )
}
