/** A row that its serde cannot read: what a changelog holds is not what the store wrote, or the serde is another one. */
import { EngineError, messageOf, type UnreadableRow } from '../../base/errors.ts'

export function unreadableRow(row: UnreadableRow, serde: string, cause: unknown): EngineError {
  const { store, partition, what } = row
  return new EngineError(
    'CHANGELOG_UNREADABLE',
    `The ${what} of a row of the store ${store} (partition ${partition}) cannot be decoded with the serde ${serde}: ` +
      messageOf(cause),
    { cause, row: { ...row, bytes: row.bytes.slice() } },
  )
}
