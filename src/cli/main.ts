#!/usr/bin/env node
import { keepCompiled } from './compile-cache.ts'

keepCompiled()
// Whoever read the output may have gone, as `head` does: that is no fault, and the rest is dropped.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}
const { exitCodeOf, sentenceOf } = await import('./exit-codes.ts')
const { runCommand } = await import('./program.ts')

let code: number
try {
  code = await runCommand(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`${sentenceOf(error)}\n`)
  code = exitCodeOf(error)
}
// A pipe takes what is written to it little by little: the process must not end before it has all of it.
for (const stream of [process.stdout, process.stderr]) {
  if (!stream.destroyed && !stream.errored) await new Promise<void>((done) => stream.write('', () => done()))
}
process.exit(code)
