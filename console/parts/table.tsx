import type { ComponentChildren, JSX } from 'preact'

interface TableProps<T> {
  readonly caption: string
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly columns: ReadonlyArray<{
    readonly name: string
    readonly cell: (row: T) => ComponentChildren
    /** Numbers stand right. */
    readonly right?: boolean
  }>
  readonly empty?: string
  /** More rows are counted, not drawn. */
  readonly most?: number
}

export function Table<T>({ caption, rows, keyOf, columns, empty, most = 500 }: TableProps<T>): JSX.Element {
  if (rows.length === 0) return <p class="calm">{empty ?? 'Nothing yet.'}</p>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll" tabIndex={0} aria-label={`${caption}, table`}>
      <table>
        <caption class="away">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, right }) => (
              <th key={name} scope="col" class={right === true ? 'right' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, cell, right }) => (
                <td key={name} class={right === true ? 'right' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && <p class="calm">{rows.length - most} more are not drawn; search narrows them.</p>}
    </section>
  )
}
