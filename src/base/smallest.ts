/** The least of these numbers, of those above a bound where one is given; Infinity where there is none. */
export function smallest(numbers: Float64Array, above?: number): number {
  let least = Number.POSITIVE_INFINITY
  for (const each of numbers) if (each < least && (above === undefined || each > above)) least = each
  return least
}
