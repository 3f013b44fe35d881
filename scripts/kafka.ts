/**
 * `npm run kafka [-- up | down] [-- --port N] [-- --heap 1g]`: starts a one-node Apache Kafka on this machine, prints
 * its bootstrap address and leaves it running; `down` stops it. Needs a JDK 17 or newer and Maven; the jars and the data
 * are kept under `$MILLRACE_CACHE` (`~/.cache/millrace`).
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { cacheFolder, KafkaMissing, LocalKafka } from './kafka/local-kafka.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '9092' },
    heap: { type: 'string', default: '1g' },
    help: { type: 'boolean', default: false },
  },
})
const command = positionals[0] ?? 'up'
const port = Number(values.port)
const folder = join(cacheFolder, 'brokers', String(port))
const pidFile = join(folder, 'pid')

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

/** The broker's pid while that process is alive and still is the broker. */
function runningPid(): number | undefined {
  if (!existsSync(pidFile)) return undefined
  const pid = Number(readFileSync(pidFile, 'utf8'))
  try {
    process.kill(pid, 0)
    const commandLine = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : folder
    return commandLine.includes(folder) ? pid : undefined
  } catch {
    return undefined
  }
}

/** Whether something listens there already. */
function answers(at: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(at, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

async function up(): Promise<void> {
  if (runningPid() === undefined) {
    if (await answers(port)) fail(`Port ${port} is taken by another program; give another one with --port.`)
    try {
      const kafka = await LocalKafka.start({ folder, port, heap: values.heap, detached: true })
      writeFileSync(pidFile, String(kafka.pid))
    } catch (error) {
      fail(error instanceof KafkaMissing ? error.message : String(error))
    }
  }
  process.stdout.write(`127.0.0.1:${port}\n`)
}

async function down(): Promise<void> {
  const pid = runningPid()
  if (pid === undefined) fail(`No Kafka runs on port ${port}; nothing to stop.`)
  process.kill(pid, 'SIGTERM')
  while (runningPid() !== undefined) await sleep(100)
  rmSync(pidFile, { force: true })
  process.stdout.write(`Kafka on port ${port} has stopped; its data stays in ${folder}.\n`)
}

if (values.help) process.stdout.write('Usage: npm run kafka [-- up | down] [-- --port N] [-- --heap 1g]\n')
else if (!Number.isInteger(port) || port < 1 || port > 65_531) fail(`"${values.port}" is no port.`)
else if (command === 'up') await up()
else if (command === 'down') await down()
else fail(`"${command}" is neither up nor down.`)
