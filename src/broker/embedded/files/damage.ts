import { BrokerError } from '../../port.ts'

/** What is wrong with a file of the broker's folder. */
export interface Damage {
  readonly path: string
  /** Byte from which on it cannot be trusted. */
  readonly at: number
  readonly why: string
}

export interface Finding extends Damage {
  /** What is lost with it, a sentence each. */
  readonly losses: readonly string[]
}

/** Damaged files are never changed unasked: the error stops the start, and says what shows and cuts them. */
export function damagedFile(folder: string, { path, at, why }: Damage): BrokerError {
  return new BrokerError(
    'BROKER_FILES_DAMAGED',
    `The embedded broker's file ${path} is damaged at byte ${at}: ${why}. Nothing was changed. Restore the folder ${folder} from a copy; \`millrace broker check ${folder}\` shows what is lost without one, and \`millrace broker repair\` cuts it off.`,
    'config',
  )
}
