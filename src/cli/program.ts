/** The command line: verbs, options and what they mean. */
import { Command, CommanderError, Option } from 'commander'
import { EngineError } from '../base/errors.ts'
import { packageVersion } from '../base/package-version.ts'
import { addBroker } from './broker-program.ts'
import { collect, parseRate, parseSetting } from './cli-options.ts'
import type { DevArguments } from './dev.ts'
import { exitCodes } from './exit-codes.ts'
import { addHa } from './ha/ha-program.ts'
import type { InspectArguments } from './looking/license.ts'
import type { LookArguments } from './looking/look.ts'
import { addLooking, asking, lookAt, outputs } from './looking/look-program.ts'
import type { RunArguments } from './run.ts'
import type { TopologyArguments } from './looking/topology.ts'
import type { TypesArguments } from './types.ts'
import type { WhyArguments } from './looking/why.ts'

const exitHelp = `
Exit codes: 0 clean, 1 crash, 2 wrong usage, configuration or input, 3 fenced by another process,
4 refused by the license, 70 a lane did not come back.`

/** Runs one command and gives the exit code. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  let code: number = exitCodes.clean
  const program = new Command('millrace')
    .description('Stream processing for TypeScript.')
    .version(packageVersion())
    .addHelpText('after', exitHelp)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'millrace: ')) })
    .showSuggestionAfterError()
  addRun(program, (result) => {
    code = result
  })
  addDev(program, (result) => {
    code = result
  })
  addTopology(program, (result) => {
    code = result
  })
  addTypes(program)
  addDemo(program, (result) => {
    code = result
  })
  addHa(program, (result) => {
    code = result
  })
  addWhy(program, (result) => {
    code = result
  })
  addBroker(program, (result) => {
    code = result
  })
  addLicense(program, (result) => {
    code = result
  })
  addLooking(program, (result) => {
    code = result
  })
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
    .option(
      '--until-idle',
      'end when everything is read, processed and committed; event time goes on to the newest record, for later runs too',
      false,
    )
    .option('--feed-rate <records/s>', 'send no faster than this', parseRate)
    .exitOverride()
    .action(async (application: string, options: RunArguments) => {
      const { runApplication } = await import('./run.ts')
      ended(await runApplication(application, options))
    })
}

function addDev(program: Command, ended: (code: number) => void): void {
  program
    .command('dev')
    .description('run an application on the embedded broker, anew whenever one of its files changes')
    .argument('<app>', 'module whose default export is the result of defineApp()')
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key, strongest of all (repeatable)', parseSetting, [])
    .option(
      '--feed <topic=file>',
      'send the JSON lines of a file, those that were not sent yet (repeatable)',
      collect,
      [],
    )
    .option('--print <topic>', 'write the committed records of a topic as JSON lines (repeatable)', collect, [])
    .option('--feed-rate <records/s>', 'send no faster than this', parseRate)
    .option('--data <folder>', 'where topics and stores are kept from start to start', '.millrace')
    .option('--fresh', 'begin with that folder empty', false)
    .option('--no-open', 'do not open the console in a browser')
    .exitOverride()
    .action(async (application: string, options: DevArguments) => {
      const { develop } = await import('./dev.ts')
      ended(await develop(application, options))
    })
}

function addTopology(program: Command, ended: (code: number) => void): void {
  program
    .command('topology')
    .description('print the topology of an application, without running it; or of a running one')
    .argument('[app]', 'module whose default export is the result of defineApp(); none: ask a running one')
    .option('--url <address>', 'HTTP interface of a process (repeatable)', collect, [])
    .option('--token-file <file>', 'file with the token (or RUNTIME_HTTP_AUTH_TOKEN)')
    .addOption(new Option('-o, --output <format>', 'how a running one answers').choices(outputs).default('table'))
    .option('--format <text|json>', 'text as Kafka Streams prints it, or JSON', 'text')
    .option('--diff <old.json>', 'say whether it can go on with the state of the one described there (exit code 1: no)')
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .exitOverride()
    .addHelpText('after', '\nExample: millrace topology app.ts; millrace topology --url http://localhost:8080')
    .action(async (application: string | undefined, options: TopologyArguments & LookArguments, verb: Command) => {
      refuseOthers(application === undefined, verb)
      if (application === undefined) return ended(await lookAt('topology', options))
      const { renderTopology } = await import('./looking/topology.ts')
      const { text, fits } = await renderTopology(application, options)
      process.stdout.write(text)
      if (!fits) ended(exitCodes.crash)
    })
}

/** Some options are of one way to ask alone: passed over, they would answer another question. */
function refuseOthers(isAsked: boolean, verb: Command): void {
  const others = isAsked ? ['format', 'diff'] : ['url', 'tokenFile', 'output']
  const given = verb.options.find((option) => {
    const name = option.attributeName()
    return others.includes(name) && verb.getOptionValueSource(name) === 'cli'
  })
  if (given === undefined) return
  const why = isAsked
    ? 'is about the file of an application; name one, as in millrace topology app.ts'
    : 'is about a running application; leave the file out to ask one'
  throw new EngineError('USAGE', `${given.long} ${why}.`)
}

function addTypes(program: Command): void {
  program
    .command('types')
    .description('write TypeScript types for Avro schemas')
    .argument('<source...>', 'files that end with .avsc, and subjects of the schema registry')
    .option('--longs <number|bigint>', 'how 64 bits are seen, as in the serde', 'number')
    .option('--out <file>', 'file to write (standard output)')
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .exitOverride()
    .action(async (sources: string[], options: TypesArguments) => {
      const { makeTypes } = await import('./types.ts')
      process.stdout.write(await makeTypes(sources, options))
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

const whyHelp = `
Example: millrace why --url http://localhost:8080

Exit codes: 0 flowing, 10 slow, 11 standing, 12 not meant to run, 13 failed, 2 wrong usage, 14 nobody answers.`

function addWhy(program: Command, ended: (code: number) => void): void {
  program
    .command('why')
    .description('say why an application stands still or is slow: cause, place, since when, what to do')
    .addHelpText('after', whyHelp)
    .option('--url <address>', 'the HTTP interface of a pod, as in http://localhost:8080')
    .option('--json', 'answer as JSON', false)
    .option('--watch', 'look again every two seconds', false)
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .exitOverride()
    .action(async (options: WhyArguments) => {
      const { why } = await import('./looking/why.ts')
      ended(await why(options))
    })
}

function addLicense(program: Command, ended: (code: number) => void): void {
  const group = program.command('license').description('license of a running application; with inspect, a key')
  asking(group, 'millrace license --url http://localhost:8080').action(async (options: LookArguments) =>
    ended(await lookAt('license', options)),
  )
  group
    .command('inspect')
    .description('show what a license key says, without judging it')
    .argument('<key>', 'the key, or @file')
    .option('--public-keys <file>', 'JWKS or PEM file to check the signature with')
    .exitOverride()
    .action(async (key: string, options: InspectArguments) => {
      const { inspect } = await import('./looking/license.ts')
      process.stdout.write(await inspect(key, options))
    })
}
