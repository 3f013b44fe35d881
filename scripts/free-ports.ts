/** Ports for servers that are started in a moment. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const host = '127.0.0.1'
/** Below those that systems give to connections: between its choice and its use nobody else is given one of these. */
const lowest = 12_000
const highest = 32_000
const mostAttempts = 1000

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}

export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>()
  for (let attempt = 0; ports.size < count; attempt++) {
    if (attempt === mostAttempts) throw new Error(`No ${count} ports from ${lowest} to ${highest} are free.`)
    const port = randomInt(lowest, highest)
    if (!ports.has(port) && (await isFree(port))) ports.add(port)
  }
  return [...ports]
}

export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number
}
