/** Stacks that were seen, put together: how often each frame was there, below which others. */
export interface Frame {
  readonly name: string
  count: number
  readonly inner: Map<string, Frame>
}

export function newFrame(name: string): Frame {
  return { name, count: 0, inner: new Map() }
}

/** `stack`: innermost first. */
export function addStack(root: Frame, stack: readonly string[]): void {
  root.count++
  let at = root
  for (const name of stack.toReversed()) {
    const next = at.inner.get(name) ?? newFrame(name)
    at.inner.set(name, next)
    next.count++
    at = next
  }
}

export interface Bar {
  readonly id: string
  readonly name: string
  readonly depth: number
  /** Shares of the whole width. */
  readonly from: number
  readonly width: number
  readonly count: number
}

export function barsOf(root: Frame): Bar[] {
  const bars: Bar[] = []
  const walk = (frame: Frame, depth: number, from: number, path: string): void => {
    let at = from
    for (const each of [...frame.inner.values()].sort((a, b) => b.count - a.count)) {
      const width = each.count / root.count
      const id = `${path}>${each.name}`
      bars.push({ id, name: each.name, depth, from: at, width, count: each.count })
      walk(each, depth + 1, at, id)
      at += width
    }
  }
  walk(root, 0, 0, root.name)
  return bars
}
