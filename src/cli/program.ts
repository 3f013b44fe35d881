/** The command line: verbs, options and what they mean. */
import { Command, CommanderError } from 'commander'
import packageFile from '../../package.json' with { type: 'json' }
import { collect, parseRate, parseSetting } from './cli-options.ts'
import { exitCodes } from './exit-codes.ts'
import { addHa } from './ha-program.ts'
import type { InspectArguments } from './license.ts'
import type { RunArguments } from './run.ts'
import type { TopologyArguments } from './topology.ts'

const exitHelp = `
Exit codes: 0 clean, 1 crash, 2 wrong usage, configuration or input, 3 fenced by another process,
4 refused by the license, 70 a lane did not come back.`

/** Runs one command and gives the exit code. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  let code: number = exitCodes.clean
  const program = new Command('millrace')
    .description('Stream processing for TypeScript.')
    .version(packageFile.version)
    .addHelpText('after', exitHelp)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'millrace: ')) })
    .showSuggestionAfterError()
  addRun(program, (result) => {
    code = result
  })
  addTopology(program, (result) => {
    code = result
  })
  addDemo(program, (result) => {
    code = result
  })
  addHa(program, (result) => {
    code = result
  })
  addLicense(program)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? exitCodes.clean : exitCodes.usage
  }
  return code
}

function addRun(program: Command, ended: (code: number) => void): void {
  program
    .command('run')
    .description('run an application')
    .argument('<app>', 'module whose default export is the result of defineApp()')
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key, strongest of all (repeatable)', parseSetting, [])
    .option('--feed <topic=file>', 'send the JSON lines of a file, or of - (standard input) (repeatable)', collect, [])
    .option('--print <topic>', 'write the committed records of a topic as JSON lines (repeatable)', collect, [])
    .option('--until-idle', 'end when everything is read, processed and committed', false)
    .option('--feed-rate <records/s>', 'send no faster than this', parseRate)
    .exitOverride()
    .action(async (application: string, options: RunArguments) => {
      const { runApplication } = await import('./run.ts')
      ended(await runApplication(application, options))
    })
}

function addTopology(program: Command, ended: (code: number) => void): void {
  program
    .command('topology')
    .description('print the topology of an application, without running it')
    .argument('<app>', 'module whose default export is the result of defineApp()')
    .option('--format <text|json>', 'text as Kafka Streams prints it, or JSON', 'text')
    .option('--diff <old.json>', 'say whether it can go on with the state of the one described there (exit code 1: no)')
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .exitOverride()
    .action(async (application: string, options: TopologyArguments) => {
      const { renderTopology } = await import('./topology.ts')
      const { text, fits } = await renderTopology(application, options)
      process.stdout.write(text)
      if (!fits) ended(exitCodes.crash)
    })
}

function addDemo(program: Command, ended: (code: number) => void): void {
  program
    .command('demo')
    .description('replay real flights through the example application, on the embedded broker')
    .option('--rate <records/s>', 'flights sent a second', parseRate, 1000)
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .option('--stay', 'keep running at the end, also without a terminal', false)
    .exitOverride()
    .action(async (options: { rate: number; set: string[]; stay: boolean }) => {
      const { runDemo } = await import('./demo.ts')
      ended(await runDemo(options))
    })
}

function addLicense(program: Command): void {
  program
    .command('license')
    .description('look at license keys')
    .exitOverride()
    .command('inspect')
    .description('show what a license key says, without judging it')
    .argument('<key>', 'the key, or @file')
    .option('--public-keys <file>', 'JWKS or PEM file to check the signature with')
    .exitOverride()
    .action(async (key: string, options: InspectArguments) => {
      const { inspect } = await import('./license.ts')
      process.stdout.write(await inspect(key, options))
    })
}
