import type { IndicatorResult } from './health.ts'

const timeoutMs = 3000

/**
 * Check of the `schema-registry` indicator: the registry answers at all, whatever it says. Runs periodically, never in a
 * probe; its address and credentials appear nowhere.
 */
export function schemaRegistryCheck(url: string): () => Promise<IndicatorResult> {
  const address = new URL(url)
  const headers = new Headers()
  if (address.username !== '') {
    const credentials = `${decodeURIComponent(address.username)}:${decodeURIComponent(address.password)}`
    headers.set('Authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
    address.username = ''
    address.password = ''
  }
  return async () => {
    const answer = await fetch(address, { headers, redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) })
    await answer.body?.cancel()
    return { up: answer.status < 500, details: { status: answer.status } }
  }
}
