/** Signed commands: with `ha.command-secret`, write access to the coordinator topic alone commands nothing. */
import { createHmac, scryptSync, timingSafeEqual } from 'node:crypto'
import type { CommandRecord } from './records.ts'

/**
 * Tells pods whether they have one secret. Whoever reads the topic can try guesses against it, as against any signed
 * command; this makes each of them dear.
 */
export function fingerprintOf(secret: string, applicationId: string): string {
  return scryptSync(secret, `ha.command-secret of ${applicationId}`, 8).toString('hex')
}

/** What is signed: everything that the command says, bound to its own name and to the epoch it is meant for. */
function signed(applicationId: string, record: CommandRecord): string {
  const { id, command, target, force, value, expectEpoch, issuer } = record
  // Without a value what is signed is what it was before there were any: builds of both kinds understand one another.
  const values = value === null ? [] : [value]
  return JSON.stringify([applicationId, id, command, target, force, expectEpoch, issuer, ...values])
}

export function signatureOf(secret: string, applicationId: string, record: CommandRecord): string {
  return createHmac('sha256', secret).update(signed(applicationId, record)).digest('hex')
}

export function signatureHolds(secret: string, applicationId: string, record: CommandRecord): boolean {
  const expected = Buffer.from(signatureOf(secret, applicationId, record))
  const given = Buffer.from(record.signature ?? '')
  return expected.length === given.length && timingSafeEqual(expected, given)
}
