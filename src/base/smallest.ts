/** The least of these numbers; Infinity where there is none. */
export function smallest(numbers: Float64Array): number {
  let least = Number.POSITIVE_INFINITY
  for (const each of numbers) if (each < least) least = each
  return least
}
