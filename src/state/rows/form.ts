/** The form of a store's rows as a text: where it differs, rows of the one cannot be read as rows of the other. */
import type { StoreSpec } from '../contract.ts'
import { segmentMs } from './layout.ts'
import { rowForm } from './row.ts'

export function storeForm(spec: StoreSpec): string {
  const { kind, keySerde, valueSerde, windowSizeMs, retainDuplicates } = spec
  return JSON.stringify([
    kind,
    rowForm(spec),
    keySerde.name,
    valueSerde.name,
    windowSizeMs ?? 0,
    retainDuplicates ?? false,
    // Rows of windows are found under the segment that their start lies in. It follows from the retention as well.
    ...(kind === 'window' ? [segmentMs(spec)] : []),
  ])
}
