/** A running application with a real license, brought into a status by its license server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LicenseServer, newSigningKey } from '../../../examples/license-server/server.ts'
import type { Held } from './held-states.ts'
import { startLive } from './live.ts'

const dayMs = 86_400_000
/** A scrape may be as old as this. */
const scrapeCacheMs = 1100

export const customer = 'Northern Lines'
export const licensedStatuses = ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID'] as const
export type LicensedStatus = (typeof licensedStatuses)[number]

export function isLicensedStatus(status: string): status is LicensedStatus {
  return (licensedStatuses as readonly string[]).includes(status)
}

export async function startLicensed(status: LicensedStatus): Promise<Held> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-licensed-'))
  // Grace begins where a lease runs out; any other status must not depend on how fast this machine asks for the next one.
  const leaseMs = status === 'GRACE_PERIOD' ? 700 : 3_600_000
  const server = new LicenseServer({ signingKey: await newSigningKey(), leaseMs })
  // Signed by somebody else: no key of this server.
  const signer = status === 'INVALID' ? new LicenseServer({ signingKey: await newSigningKey() }) : server
  const keysFile = join(folder, 'keys.json')
  writeFileSync(keysFile, JSON.stringify(server.jwks()))
  const url = await server.listen()
  const key = await signer.issue({ customer, tier: 'team', machines: 5, expiresAtMs: Date.now() + 300 * dayMs })
  const { jti: id } = JSON.parse(Buffer.from(key.split('.')[1] as string, 'base64url').toString()) as { jti: string }
  const live = await startLive({
    app: 'conformance-app',
    config: {
      'license.key': key,
      'license.server-url': url,
      'license.public-keys': keysFile,
      'license.activation-delay': status === 'PENDING' ? '5m' : 100,
      'license.heartbeat-interval': 200,
      'license.grace-period': '1h',
      'license.cache-file': join(folder, 'cache.json'),
    },
  })
  const shows = (wanted: string): Promise<boolean> =>
    live.until(`the license is ${wanted}`, async () => String((await live.get('/license')).status) === wanted)
  let open = true
  const close = async (): Promise<void> => {
    if (open) await server.close()
    open = false
  }
  await live.untilState('RUNNING')
  if (!['PENDING', 'INVALID'].includes(status)) await shows('VALID')
  if (status === 'EXPIRED') server.change(id, { expiresAtMs: Date.now() - 1000 })
  if (status === 'REVOKED') server.change(id, { revoked: true })
  if (status === 'GRACE_PERIOD') await close()
  await shows(status)
  await new Promise((resolve) => setTimeout(resolve, scrapeCacheMs))
  return {
    ...live,
    stop: async () => {
      await live.stop()
      await close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
