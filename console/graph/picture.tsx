import type { JSX, RefObject } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
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
/** Smaller letters are a strain. */
const readable = 0.75

interface View {
  readonly canvas: RefObject<HTMLElement | null>
  readonly scale: number
  /** What is in the middle stays there. */
  readonly zoomTo: (scale: number) => void
  readonly fitAll: () => void
}

/** Opens with all in view where that can be read, else with the sources. */
function useView(placed: Placed): View {
  const canvas = useRef<HTMLElement | null>(null)
  const [scale, setScale] = useState(readable)
  /** Where in the graph the middle of the view is to be. */
  const middle = useRef(sourcesOf(placed))
  useLayoutEffect(() => {
    if (canvas.current === null) return
    middle.current = sourcesOf(placed)
    setScale(Math.max(readable, wholeIn(canvas.current, placed)))
  }, [placed])
  useLayoutEffect(() => {
    if (canvas.current === null) return
    const { clientWidth, clientHeight } = canvas.current
    canvas.current.scrollTo(middle.current.x * scale - clientWidth / 2, middle.current.y * scale - clientHeight / 2)
  }, [placed, scale])
  const zoomTo = (next: number): void => {
    if (canvas.current === null) return
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = canvas.current
    middle.current = { x: (scrollLeft + clientWidth / 2) / scale, y: (scrollTop + clientHeight / 2) / scale }
    setScale(next)
  }
  const fitAll = (): void => {
    if (canvas.current !== null) zoomTo(wholeIn(canvas.current, placed))
  }
  return { canvas, scale, zoomTo, fitAll }
}

/** The scale at which the whole graph is in view; never larger than life. */
function wholeIn(canvas: HTMLElement, { width, height }: Placed): number {
  const { maxHeight, borderTopWidth } = getComputedStyle(canvas)
  const borders = 2 * Number.parseFloat(borderTopWidth)
  const [wide, high] = [canvas.offsetWidth - borders, Number.parseFloat(maxHeight) - borders]
  return Math.min(1, Math.floor(Math.min(wide / width, high / height) * 1000) / 1000)
}

/** The middle of the first column: what is read from later on lies further to the right, next to where it is met. */
function sourcesOf({ nodes }: Placed): { x: number; y: number } {
  const first = Math.min(...nodes.map(({ x }) => x))
  const ys = nodes.filter(({ x, width }) => x < first + width).map(({ y, height }) => y + height / 2)
  return { x: 0, y: (Math.min(...ys) + Math.max(...ys)) / 2 }
}

export function Picture(props: PictureProps): JSX.Element {
  const { placed, chosen } = props
  const { canvas, scale, zoomTo, fitAll } = useView(placed)
  const smaller = zooms.findLast((zoom) => zoom < scale)
  const larger = zooms.find((zoom) => zoom > scale)
  return (
    <div class="graph">
      <p class="tools">
        <Zoom name="Smaller" sign="−" to={smaller} zoomTo={zoomTo} />
        <span>{Math.round(scale * 100)} %</span>
        <Zoom name="Larger" sign="+" to={larger} zoomTo={zoomTo} />
        <button type="button" onClick={fitAll}>
          Fit all
        </button>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="canvas" ref={canvas} tabIndex={0} aria-label="Graph of the topology">
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

function Zoom(props: {
  name: string
  sign: string
  to: number | undefined
  zoomTo: (scale: number) => void
}): JSX.Element {
  const { name, sign, to, zoomTo } = props
  return (
    <button type="button" aria-label={name} disabled={to === undefined} onClick={() => zoomTo(to ?? 1)}>
      {sign}
    </button>
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
