/** Whether a journal is all there. Pure: the start refuses what is found here, `millrace broker check` shows it. */
import type { LastEntry } from './journal-end.ts'
import { type Frame, frameBehind, framesIn, journalVersion } from './journal-frames.ts'

export interface JournalState {
  /** Undefined where there is no such file. */
  readonly bytes: Uint8Array | undefined
  /** What the file beside it says was written last, if that can be read. */
  readonly last: LastEntry | undefined
  /** Whether anything else in the folder says that there was a journal. */
  readonly used: boolean
}

export interface JudgedJournal {
  readonly frames: readonly Frame[]
  /** Where the whole entries end. */
  readonly size: number
  /** Whether what follows them is a write that was cut short. */
  readonly torn: boolean
  readonly fault: { readonly at: number; readonly why: string } | undefined
}

export function judgeJournal({ bytes, last, used }: JournalState): JudgedJournal {
  if (bytes === undefined) {
    const fault = used ? { at: 0, why: 'it is missing, and what it says of the others is lost' } : undefined
    return { frames: [], size: 0, torn: false, fault }
  }
  const { frames, size } = framesIn(bytes)
  const why = faultOf(bytes, frames, size, last, used)
  return {
    frames,
    size,
    torn: why === undefined && size < bytes.length,
    fault: why === undefined ? undefined : { at: size, why },
  }
}

function faultOf(
  bytes: Uint8Array,
  frames: readonly Frame[],
  size: number,
  last: LastEntry | undefined,
  used: boolean,
): string | undefined {
  const first = frames[0]?.record
  if (first === undefined && used) return 'it holds no whole entry, and what it said of the others is lost'
  if (first?.kind === 'format' && first.version > journalVersion) {
    return `it is of format ${first.version}, which a later version writes; this one knows format ${journalVersion}`
  }
  if (first?.n !== undefined && first.kind !== 'format') return 'its first entries are missing'
  const lastN = frames.at(-1)?.record.n ?? -1
  // Of what was not forced to the disk yet the power may have left later entries, and not those before.
  const isTail = promisesOf(frames).forced && last !== undefined && lastN >= last.n
  if (size < bytes.length && !isTail && frameBehind(bytes, size + 1)) {
    return 'an entry is damaged, and whole ones follow'
  }
  if (last === undefined) return undefined
  if (lastN < 0) return `it is of the format before, and older than the ${last.n} entries that were written since`
  if (lastN < last.n) return `it goes on to entry ${lastN}, where ${last.n} were written`
  const witnessed = frames.find(({ record }) => record.n === last.n)
  return witnessed === undefined || witnessed.crc === last.crc
    ? undefined
    : `its entry ${last.n} is not the one that was written`
}

/** What the journal promises of the segments. */
export interface Promises {
  /** It names all of them but the newest: the first format did not. */
  readonly names: boolean
  /** Whatever was acknowledged was forced to the disk and told to the journal before: behind that nothing counts. */
  readonly forced: boolean
}

export function promisesOf(frames: readonly Frame[]): Promises {
  const first = frames[0]?.record
  return first?.kind === 'format' ? { names: true, forced: first.forced === true } : { names: false, forced: false }
}
