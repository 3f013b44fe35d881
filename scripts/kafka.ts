/**
 * `npm run kafka [-- up | down] [-- --port N] [-- --heap 1g] [-- --brokers N]`: starts an Apache Kafka of one broker, or
 * of several, on this machine, prints its bootstrap address and leaves it running; `down` stops it. Needs a JDK 17 or newer and Maven; the jars and the data
 * are kept under `$MILLRACE_CACHE` (`~/.cache/millrace`).
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { LocalCluster } from './kafka/local-cluster.ts'
import { cacheFolder, KafkaMissing, LocalKafka, portsPerBroker } from './kafka/local-kafka.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: 'string', default: '9092' },
    heap: { type: 'string', default: '1g' },
    brokers: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
})
const command = positionals[0] ?? 'up'
const port = Number(values.port)
const brokers = Number(values.brokers)
const folder = join(cacheFolder, 'brokers', String(port))
const pidFile = join(folder, 'pid')

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

/** The brokers' pids, of those whose processes are alive and still are brokers. */
function runningPids(): number[] {
  if (!existsSync(pidFile)) return []
  const pids = readFileSync(pidFile, 'utf8').split('\n').filter(Boolean).map(Number)
  return pids.filter((pid) => {
    try {
      process.kill(pid, 0)
      const commandLine = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : folder
      return commandLine.includes(folder)
    } catch {
      return false
    }
  })
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

async function started(): Promise<number[]> {
  const options = { folder, port, heap: values.heap, detached: true }
  if (brokers > 1) return (await LocalCluster.start({ ...options, brokers })).pids
  const { pid } = await LocalKafka.start(options)
  return pid === undefined ? [] : [pid]
}

async function up(): Promise<void> {
  if (runningPids().length === 0) {
    if (await answers(port)) fail(`Port ${port} is taken by another program; give another one with --port.`)
    try {
      writeFileSync(pidFile, (await started()).join('\n'))
    } catch (error) {
      fail(error instanceof KafkaMissing ? error.message : String(error))
    }
  }
  const addresses = Array.from({ length: brokers }, (_, i) => `127.0.0.1:${port + i * portsPerBroker}`)
  process.stdout.write(`${addresses.join(',')}\n`)
}

async function down(): Promise<void> {
  const pids = runningPids()
  if (pids.length === 0) fail(`No Kafka runs on port ${port}; nothing to stop.`)
  for (const pid of pids) process.kill(pid, 'SIGTERM')
  // The last broker of several has no quorum left that would let it leave in order.
  const until = performance.now() + 30_000
  while (runningPids().length > 0 && performance.now() < until) await sleep(100)
  for (const pid of runningPids()) process.kill(pid, 'SIGKILL')
  rmSync(pidFile, { force: true })
  process.stdout.write(`Kafka on port ${port} has stopped; its data stays in ${folder}.\n`)
}

if (values.help)
  process.stdout.write('Usage: npm run kafka [-- up | down] [-- --port N] [-- --heap 1g] [-- --brokers N]\n')
else if (!Number.isInteger(port) || port < 1 || port > 65_531) fail(`"${values.port}" is no port.`)
else if (!Number.isInteger(brokers) || brokers < 1 || brokers > 9) fail(`"${values.brokers}" is no number of brokers.`)
else if (command === 'up') await up()
else if (command === 'down') await down()
else fail(`"${command}" is neither up nor down.`)
