/** Naive models of windows and joins: slow, short, and obviously what is meant. */
export interface Event {
  readonly key: string
  readonly value: number
  readonly at: number
}

/** Sums by `key@start` of the windows that hold each event; late ones are left out as the engine's rule says. */
export function windowSums(
  events: readonly Event[],
  size: number,
  advance: number,
  grace: number,
): Map<string, number> {
  const sums = new Map<string, number>()
  let time = Number.NEGATIVE_INFINITY
  for (const { key, value, at } of events) {
    time = Math.max(time, at)
    for (let start = 0; start <= at; start += advance) {
      if (at >= start + size || start + size + grace <= time) continue
      sums.set(`${key}@${start}`, (sums.get(`${key}@${start}`) ?? 0) + value)
    }
  }
  return sums
}

/** Sessions of ordered events: a gap larger than `gap` ends one. */
export function sessionsOf(events: readonly Event[], gap: number): string[] {
  const sessions: Array<{ key: string; start: number; end: number; sum: number }> = []
  for (const { key, value, at } of [...events].sort((a, b) => a.at - b.at)) {
    const open = sessions.findLast((session) => session.key === key)
    if (open && at - open.end <= gap) {
      open.end = at
      open.sum += value
    } else {
      sessions.push({ key, start: at, end: at, sum: value })
    }
  }
  return sessions.map(({ key, start, end, sum }) => `${key}[${start},${end}]=${sum}`).sort()
}

/** All pairs of one key whose times lie within `before` and `after` of the left one. */
export function pairsOf(left: readonly Event[], right: readonly Event[], before: number, after: number): string[] {
  const pairs: string[] = []
  for (const l of left) {
    for (const r of right) {
      if (l.key === r.key && r.at >= l.at - before && r.at <= l.at + after) pairs.push(`${l.key}:${l.value}-${r.value}`)
    }
  }
  return pairs.sort()
}

/** Contents of sliding windows: every set of events that some interval of the length holds, by its first and last. */
export function slidingSums(events: readonly Event[], difference: number): Map<string, number> {
  const sums = new Map<string, number>()
  const times = (key: string): number[] => events.filter((e) => e.key === key).map((e) => e.at)
  for (const key of new Set(events.map((e) => e.key))) {
    const starts = times(key).flatMap((at) => [Math.max(0, at - difference), at + 1])
    for (const start of starts) {
      const inside = events.filter((e) => e.key === key && e.at >= start && e.at <= start + difference)
      // A window right after an event exists only if it holds another one.
      if (inside.length > 0)
        sums.set(
          `${key}@${start}`,
          inside.reduce((sum, e) => sum + e.value, 0),
        )
    }
  }
  return sums
}
