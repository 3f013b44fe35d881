/** `node examples/license-server/main.ts <verb>`; see README.md beside it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { JWK } from 'jose'
import { type LicenseRecord, LicenseServer, type LicenseStore, newSigningKey } from './server.ts'

const usage = `Usage:
  main.ts issue  --customer <name> [--tier <tier>] [--machines <n>] [--days <n>]   print a new license key
  main.ts revoke --id <license id>                                                 revoke it
  main.ts keys                                                                     print the public keys (JWKS)
  main.ts serve  [--port <n>]                                                      serve the protocol
Common: --data <folder>   where keys and licenses are kept (default ./license-data)
`

/** Licenses in a file, read anew each time, so that \`revoke\` reaches a server that runs. */
class FileStore implements LicenseStore {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  get(id: string): LicenseRecord | undefined {
    return this.#read()[id]
  }

  put(record: LicenseRecord): void {
    writeFileSync(this.#path, `${JSON.stringify({ ...this.#read(), [record.id]: record }, null, 2)}\n`, { mode: 0o600 })
  }

  #read(): Record<string, LicenseRecord> {
    return existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, 'utf8')) : {}
  }
}

async function signingKeyIn(folder: string): Promise<JWK> {
  const path = join(folder, 'signing-key.json')
  if (!existsSync(path)) writeFileSync(path, `${JSON.stringify(await newSigningKey())}\n`, { mode: 0o600 })
  return JSON.parse(readFileSync(path, 'utf8'))
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    data: { type: 'string', default: './license-data' },
    customer: { type: 'string' },
    tier: { type: 'string', default: 'standard' },
    machines: { type: 'string', default: '1' },
    days: { type: 'string', default: '365' },
    id: { type: 'string' },
    port: { type: 'string', default: '8090' },
  },
})
mkdirSync(values.data, { recursive: true })
const server = new LicenseServer({
  signingKey: await signingKeyIn(values.data),
  store: new FileStore(join(values.data, 'licenses.json')),
})

switch (positionals[0]) {
  case 'issue':
    if (values.customer === undefined) fail('issue needs --customer.')
    else {
      const expiresAtMs = Date.now() + Number(values.days) * 86_400_000
      const spec = { customer: values.customer, tier: values.tier, machines: Number(values.machines), expiresAtMs }
      process.stdout.write(`${await server.issue(spec)}\n`)
    }
    break
  case 'revoke':
    if (values.id === undefined || !server.change(values.id, { revoked: true })) fail('There is no license of that id.')
    break
  case 'keys':
    process.stdout.write(`${JSON.stringify(server.jwks(), null, 2)}\n`)
    break
  case 'serve':
    process.stdout.write(`License server on ${await server.listen(Number(values.port))}\n`)
    break
  default:
    fail(usage)
}

function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 2
}
