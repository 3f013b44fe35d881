/** Reading through the log: a record of one's own that comes back proves that everything before it has been read. */
import type { Out } from './events.ts'
import type { Pod, Verification } from './pod.ts'
import { encode } from './log/records.ts'

export function verify(pod: Pod, out: Out, purpose: Verification['purpose'], now: number): void {
  const verification = { purpose, nonces: new Set<string>(), askedAt: now, answered: false }
  pod.verifications.push(verification)
  append(pod, out, verification)
}

/** Own VERIFY records that were read back. */
export function readBack(pod: Pod, nonce: string): void {
  for (const verification of pod.verifications) if (verification.nonces.has(nonce)) verification.answered = true
}

/** What never came back is asked again: once more does no harm. */
export function askAgain(pod: Pod, out: Out, now: number): void {
  for (const verification of pod.verifications) {
    if (verification.answered || now - verification.askedAt < 2 * pod.settings.heartbeatIntervalMs) continue
    verification.askedAt = now
    append(pod, out, verification)
  }
}

/** Takes those that are answered. */
export function answered(pod: Pod): Array<Verification['purpose']> {
  const done = pod.verifications.filter((verification) => verification.answered)
  for (const verification of done) pod.verifications.splice(pod.verifications.indexOf(verification), 1)
  return done.map((verification) => verification.purpose)
}

/** Nothing is waited for any more; an engine that asked for the token is told that it is gone. */
export function dropVerifications(pod: Pod, out: Out): void {
  for (const { purpose } of pod.verifications.splice(0)) {
    if (purpose.type === 'token') out.engine({ type: 'ha-token', id: purpose.id, held: false })
  }
}

/** Whichever of its records comes back first will do: each was written after the question came up. */
function append(pod: Pod, out: Out, { nonces }: Verification): void {
  const nonce = pod.nextName()
  nonces.add(nonce)
  out.append(encode({ kind: 'verify', podId: pod.podId, nonce }))
}
