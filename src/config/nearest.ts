/**
 * Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours, each one step.
 * More than `most` is told as more, not exactly: an environment holds hundreds of names that are far from every key.
 */
export function editDistance(a: string, b: string, most = Number.POSITIVE_INFINITY): number {
  let beforeLast: number[] = []
  let leastOfLast = 0
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let best = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] as number) + 1)
      }
      row.push(best)
      if (best < least) least = best
    }
    // What comes stands on the last two rows.
    if (least > most && leastOfLast > most) return least
    leastOfLast = least
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}

/** The candidate nearest to `name`, or undefined where none is near enough to be meant. */
export function nearestName(name: string, candidates: readonly string[], limit?: number): string | undefined {
  const most = limit ?? Math.max(2, Math.floor(name.length / 4))
  let best: string | undefined
  let bestDistance = most + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(name, candidate, bestDistance - 1)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}
