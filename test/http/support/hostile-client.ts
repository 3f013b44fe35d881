/** A client that means ill: it opens connections, asks without end on each, and opens another for each that is closed. */
import { connect } from 'node:net'
import { setPriority } from 'node:os'

export interface HostileWork {
  readonly url: string
  readonly connections: number
  /** Sent on each connection as soon as it stands, and again whenever all of it has gone out. */
  readonly bytes: string
  /** Reads what comes, takes nothing of it, or goes away as soon as everything is sent. */
  readonly manner: 'reads' | 'takes nothing' | 'goes away'
}

// Clients are on machines of their own: a process that gives way takes no processor from the server.
setPriority(19)
let stopped = false

function open(work: HostileWork): void {
  if (stopped) return
  const { hostname, port } = new URL(work.url)
  const socket = connect(Number(port), hostname)
  if (work.manner === 'takes nothing') socket.pause()
  else socket.resume()
  const ask = (): void => {
    if (stopped || socket.destroyed) return
    socket.write(work.bytes, () => {
      if (work.manner === 'goes away') socket.destroy()
      else setImmediate(ask)
    })
  }
  socket.on('connect', ask)
  socket.on('error', () => undefined)
  socket.on('close', () => setTimeout(() => open(work), 5))
}

process.on('message', (work: HostileWork) => {
  for (let i = 0; i < work.connections; i++) open(work)
})
process.on('disconnect', () => {
  stopped = true
  process.exit(0)
})
process.send?.('ready')
