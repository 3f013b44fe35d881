/** ISO 8601 in UTC; null for an unknown instant and for one that no calendar holds. */
export function iso(ms: number | null): string | null {
  return ms === null || !(Math.abs(ms) <= 8.64e15) ? null : new Date(ms).toISOString()
}

/** The same of an instant that the clock has told, which every calendar holds. */
export function isoOfClock(ms: number): string {
  return new Date(ms).toISOString()
}
