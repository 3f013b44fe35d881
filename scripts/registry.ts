/**
 * `npm run registry [-- up | down] [-- --port N]`: starts an Apicurio Registry on this machine, prints its address for
 * `schema-registry.url` and leaves it running; `down` stops it. Needs a JDK 17 or newer and Maven.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { cacheFolder, KafkaMissing } from './kafka/local-kafka.ts'
import { LocalRegistry } from './registry/local-registry.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '8081' }, help: { type: 'boolean', default: false } },
})
const command = positionals[0] ?? 'up'
const port = Number(values.port)
const pidFile = join(cacheFolder, `registry-${port}.pid`)

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

/** The registry's pid, if the process of that number is alive and is one on this port. */
function runningPid(): number | undefined {
  if (!existsSync(pidFile)) return undefined
  const pid = Number(readFileSync(pidFile, 'utf8'))
  try {
    process.kill(pid, 0)
    const file = `/proc/${pid}/cmdline`
    return !existsSync(file) || readFileSync(file, 'utf8').includes(`quarkus.http.port=${port}`) ? pid : undefined
  } catch {
    return undefined
  }
}

async function up(): Promise<void> {
  if (runningPid() === undefined) {
    try {
      const { pid } = await LocalRegistry.start({ port, detached: true })
      writeFileSync(pidFile, String(pid))
    } catch (error) {
      fail(error instanceof KafkaMissing ? error.message : String(error))
    }
  }
  process.stdout.write(`http://127.0.0.1:${port}/apis/ccompat/v7\n`)
}

function down(): void {
  const pid = runningPid()
  if (pid === undefined) fail(`No registry runs on port ${port}; nothing to stop.`)
  process.kill(pid, 'SIGTERM')
  rmSync(pidFile, { force: true })
  process.stdout.write(`The registry on port ${port} has stopped.\n`)
}

if (values.help) process.stdout.write('Usage: npm run registry [-- up | down] [-- --port N]\n')
else if (!Number.isInteger(port) || port < 1 || port > 65_535) fail(`"${values.port}" is no port.`)
else if (command === 'up') await up()
else if (command === 'down') down()
else fail(`"${command}" is neither up nor down.`)
