import type { LicenseReadiness, LicenseState } from './view.ts'

/** The license of this process, as the HTTP interface, the probes and the metrics see it; the metrics are made from the state. */
export interface License {
  /** The fourteen fields of `/license`, JSON-ready. */
  state(): LicenseState
  readiness(): LicenseReadiness
  /** Begins the wait for the first validation. */
  start(): void
  /** Gives the machine's seat back to the server, if there is one, within two seconds. */
  stop(): Promise<void>
}

/** A line for the log. No line tells customer or license id. */
export type LicenseLog = (line: {
  readonly level: 'info' | 'warn' | 'error'
  readonly component: string
  readonly message: string
}) => void
