#!/usr/bin/env node
import { keepCompiled } from './compile-cache.ts'
import { keepWriting, outputFault } from './feed/output.ts'
import { keepEarlySignals } from './signals.ts'

keepEarlySignals(process.argv[2])
keepCompiled()
keepWriting()
const { exitCodeOf, exitCodes, sentenceOf } = await import('./exit-codes.ts')
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
const fault = outputFault()
// Whoever read the output may have gone, as `head` does: that is no fault.
if (fault !== undefined && fault.code !== 'EPIPE') {
  const told = `millrace: Standard output took no more (${fault.code ?? fault.message}): what is missing there was not written.\n`
  await new Promise<void>((done) => process.stderr.write(told, () => done()))
  code ||= exitCodes.crash
}
process.exit(code)
