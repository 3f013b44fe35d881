#!/usr/bin/env node
import { exitCodeOf, sentenceOf } from './exit-codes.ts'
import { runCommand } from './program.ts'

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
