/** A process that runs the application of a backlog; tells how far it is, and is killed within when it is told to. */
import { type LogLine, type Runtime, startRuntime } from '../../../../src/runtime/index.ts'
import { appFile } from '../engine.ts'

/** What the process tells. */
export interface Told {
  readonly state: string
  /** Over all partitions of the input. */
  readonly committed: number
  readonly rss: number
  /** Of the processor, ms. */
  readonly cpuMs: number
  readonly complaints: readonly string[]
}

export type Command = 'kill' | 'stop'

const config = JSON.parse(process.env.BACKLOG_CONFIG ?? '{}') as Record<string, unknown>
const toldEveryMs = 100

const complaints: string[] = []
/** What the application looks like to people is another matter: on a machine with too much to do a broker may seem gone. */
const log = ({ level, component, message }: LogLine): void => {
  if (level !== 'info' && level !== 'debug' && component !== 'diagnosis') complaints.push(message)
}
const start = (): Promise<Runtime> => startRuntime({ application: appFile('backlog'), config, log })

let runtime: Runtime | undefined = await start()

function tell(): void {
  if (runtime === undefined || !process.connected) return
  const { current: state } = runtime.view.state()
  const sources = runtime.view.offsets()?.sources ?? []
  let committed = 0
  for (const { partitions } of sources) for (const { committedOffset } of partitions) committed += committedOffset
  const { user, system } = process.cpuUsage()
  const told: Told = {
    state,
    committed,
    rss: process.memoryUsage.rss(),
    cpuMs: (user + system) / 1000,
    complaints: complaints.splice(0),
  }
  process.send?.(told)
}

const telling = setInterval(tell, toldEveryMs)

process.on('message', async (command: Command) => {
  const before = runtime
  runtime = undefined
  if (command === 'kill') {
    await before?.kill()
    runtime = await start()
    return
  }
  const code = await before?.stop()
  clearInterval(telling)
  process.exit(code)
})
process.on('disconnect', () => process.exit(1))
