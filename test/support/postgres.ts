/** A PostgreSQL of a test's own, without a port. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { eventually } from './millrace.ts'

const debian = '/usr/lib/postgresql'

/** In the path, else where Debian puts it. */
function found(command: string): string | undefined {
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return folders.map((folder) => join(folder, command)).find((path) => existsSync(path))
}

const server = found('postgres')
const initdb = found('initdb')

/** PostgreSQL refuses to run as root. */
function owner(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout))
    if (uid && gid) return { uid, gid }
  }
  return undefined
}

export const postgresMissing: string | false =
  server && initdb ? false : 'postgres is not on this machine (the package postgresql of Debian has it)'

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    // It is still starting.
    return false
  } finally {
    await client.end()
  }
}

export interface Postgres {
  readonly url: string
  stop(): Promise<void>
}

export async function startPostgres(): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-pg-'))
  const as = owner()
  if (as) chownSync(folder, as.uid, as.gid)
  const data = join(folder, 'data')
  const options = { ...as, cwd: folder, stdio: 'ignore' } as const
  execFileSync(initdb as string, ['-D', data, '-U', 'test', '-A', 'trust', '-N', '-E', 'UTF8', '--no-locale'], options)
  const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off']
  const child = spawn(server as string, ['-D', data, ...settings.flatMap((one) => ['-c', one])], options)
  const ended = once(child, 'exit')
  const url = `postgresql://test@localhost/postgres?host=${encodeURIComponent(folder)}`
  await eventually('PostgreSQL answers', () => child.exitCode !== null || answers(url))
  return {
    url,
    stop: async () => {
      child.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
