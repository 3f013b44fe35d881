/** Keeps the machine busy beside a test, with processes that end by themselves should nobody end them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'

const loop = 'const end = Date.now() + Number(process.argv[1]); while (Date.now() < end);'

/** Two loops a core: with what is tested, three times what the machine can do. */
export function keepBusy(atMostMs: number): () => Promise<void> {
  const children: ChildProcess[] = []
  for (let n = 0; n < 2 * availableParallelism(); n++)
    children.push(spawn(process.execPath, ['-e', loop, `${atMostMs}`], { stdio: 'ignore' }))
  return async () => {
    const ended = children.map((child) => {
      if (child.exitCode !== null || child.signalCode !== null) return undefined
      const { promise, resolve } = Promise.withResolvers<void>()
      child.once('exit', () => resolve())
      child.kill('SIGKILL')
      return promise
    })
    await Promise.all(ended)
  }
}
