/** Tables for terminals: as narrow as what they hold, and never wider than the screen. */

export interface TableColumn<T> {
  readonly name: string
  readonly cell: (row: T) => string
  /** Numbers stand right. */
  readonly right?: boolean
}

const gap = 2
const narrowest = 4

export function tableText<T>(rows: readonly T[], columns: ReadonlyArray<TableColumn<T>>, width = 80): string {
  const cells = [columns.map(({ name }) => name), ...rows.map((row) => columns.map(({ cell }) => oneLine(cell(row))))]
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i]?.length ?? 0)))
  narrow(widths, width - gap * (columns.length - 1))
  const lines = cells.map((line) =>
    line
      .map((text, i) => {
        const room = widths[i] ?? 0
        const shown = shortened(text, room)
        return columns[i]?.right === true ? shown.padStart(room) : shown.padEnd(room)
      })
      .join(' '.repeat(gap))
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}

/** What is widest gives way first. */
function narrow(widths: number[], room: number): void {
  for (let sum = widths.reduce((a, b) => a + b, 0); sum > room; sum--) {
    const widest = widths.indexOf(Math.max(...widths))
    if ((widths[widest] ?? 0) <= narrowest) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}

export function shortened(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

/** Names and what they are, below one another. */
export function pairsText(pairs: ReadonlyArray<readonly [name: string, value: string]>, width = 80): string {
  const room = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(room)}  ${wrapped(value, width - room - 2, room + 2)}\n`).join('')
}

function wrapped(text: string, room: number, indent: number): string {
  const lines: string[] = []
  for (const word of oneLine(text).split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= room) lines[lines.length - 1] = `${last} ${word}`
    else for (let at = 0; at === 0 || at < word.length; at += room) lines.push(word.slice(at, at + room))
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}
