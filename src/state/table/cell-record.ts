/** What the record of a cell says of its row, in `cell-columns.ts` and `segment-table.ts` alike. */

/** What a cell holds: nothing (the backend may have a row), a deletion, a value as the application sees it, the value's bytes, a number. */
export const absent = 0
export const deletion = 1
export const decoded = 2
export const encoded = 3
export const plainNumber = 4

/** What is in the record: its timestamp and a number as doubles, the rest as integers. */
export const timestampDouble = 0
export const numberDouble = 1
export const generationInt = 4
/** Where in the log of its generation the row stands as it was before. */
export const undoInt = 5
export const formInt = 6
