import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../ask/client.ts'
import { useAsk } from '../ask/live.ts'
import type { Threads } from '../ask/model.ts'
import { number } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'
import { addStack, barsOf, type Frame, newFrame } from './flame.ts'

const sampleEveryMs = 500
const sampleForMs = 10_000
const path = '/debug/threads?filter=known&depth=60'

export function ThreadsPage(): JSX.Element {
  const threads = useAsk<Threads>('/debug/threads', 5000)
  const { value } = threads
  return (
    <>
      <Panel title="Engine threads" path="/debug/threads" kept={threads} wide>
        {value?.engineThreads.map(({ name, role, state, currentNode, stack }) => (
          <details key={name} class="thread" open={role === 'lane' && state !== 'WAITING'}>
            <summary>
              <b>{name}</b> <span class={`state ${state.toLowerCase()}`}>{state}</span>{' '}
              {currentNode === null ? '' : `at ${currentNode}`}
            </summary>
            {stack.length === 0 ? (
              <p class="calm">
                No frames: {state === 'BLOCKED' ? 'it is in native code and does not answer' : 'it waits'}.
              </p>
            ) : (
              <ol class="stack">
                {stack.map((frame, i) => (
                  <li key={`${i} ${frame}`}>
                    <code>{frame}</code>
                  </li>
                ))}
              </ol>
            )}
          </details>
        ))}
      </Panel>
      <Samples />
      <Panel title="Threads of the operating system" path="/debug/threads" kept={threads} wide>
        <Table
          caption="Threads of the operating system"
          rows={value?.platformThreads ?? []}
          keyOf={({ tid }) => String(tid)}
          empty="The operating system does not tell."
          columns={[
            { name: 'Thread', cell: ({ name }) => name },
            { name: 'Number', right: true, cell: ({ tid }) => tid },
            { name: 'State', cell: ({ state }) => state },
            { name: 'CPU ms', right: true, cell: ({ cpuMs }) => number(cpuMs) },
          ]}
        />
      </Panel>
    </>
  )
}

/** Looks at the stacks again and again for ten seconds. */
function Samples(): JSX.Element {
  const [frames, setFrames] = useState<ReadonlyMap<string, Frame>>(new Map())
  const [left, setLeft] = useState(0)
  const stop = useRef(false)
  useEffect(
    () => () => {
      stop.current = true
    },
    [],
  )
  const run = async (): Promise<void> => {
    const found = new Map<string, Frame>()
    const endMs = Date.now() + sampleForMs
    while (Date.now() < endMs && !stop.current) {
      setLeft(endMs - Date.now())
      try {
        const { engineThreads } = await ask<Threads>(path)
        for (const { name, stack, state } of engineThreads) {
          const root = found.get(name) ?? newFrame(name)
          found.set(name, root)
          addStack(root, stack.length > 0 ? stack : [`(${state.toLowerCase()})`])
        }
        setFrames(new Map(found))
      } catch {
        // The page says already that nobody answers; the next look may be answered.
      }
      await new Promise((resolve) => setTimeout(resolve, sampleEveryMs))
    }
    setLeft(0)
  }
  return (
    <Panel title="Samples over 10 s" path={path} wide>
      <p class="actions">
        <button type="button" disabled={left > 0} onClick={() => void run()}>
          {left > 0 ? `Sampling, ${Math.ceil(left / 1000)} s left` : 'Sample stacks'}
        </button>
      </p>
      {[...frames.values()].map((root) => (
        <Flame key={root.name} root={root} />
      ))}
      {frames.size === 0 && <p class="calm">Shows as a flame graph where the threads spend their time.</p>}
    </Panel>
  )
}

const barHeight = 18

function Flame({ root }: { root: Frame }): JSX.Element {
  const bars = barsOf(root)
  const depth = Math.max(...bars.map((bar) => bar.depth)) + 1
  const [first] = bars.filter(({ width }) => width > 0.5).toReversed()
  return (
    <figure class="flame">
      <figcaption>
        <b>{root.name}</b>, {root.count} samples
        {first !== undefined && `; mostly in ${first.name}`}
      </figcaption>
      <svg width="100%" height={depth * barHeight} role="img" aria-label={`Flame graph of ${root.name}`}>
        {bars.map(({ id, name, depth: at, from, width, count }) => (
          <svg key={id} x={`${from * 100}%`} y={at * barHeight} width={`${width * 100}%`} height={barHeight - 1}>
            <title>{`${name}: ${count} of ${root.count}`}</title>
            <rect class={`frame f${at % 3}`} width="100%" height="100%" />
            <text x={4} y={13}>
              {name}
            </text>
          </svg>
        ))}
      </svg>
    </figure>
  )
}
