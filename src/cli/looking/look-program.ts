/** The verbs that ask a running application, and their options. */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { EngineError } from '../../base/errors.ts'
import { collect, parseSetting } from '../cli-options.ts'
import { type Shell, shells } from './completion.ts'
import type { DlqArguments } from './dlq.ts'
import type { LookArguments, Output, RowsArguments } from './look.ts'
import type { ViewedName } from './views.ts'

export const outputs: readonly Output[] = ['table', 'json', 'yaml']

type Ended = (code: number) => void

const exits = 'Exit codes: 0 done, 1 refused or not yet, 2 wrong usage, token or switched off, 14 nobody answers.'

function example(line: string): string {
  return `\nExample: ${line}\n\n${exits}`
}

/** Options of every verb that asks. */
export function asking(verb: Command, line: string): Command {
  return verb
    .option('--url <address>', 'HTTP interface of a process (repeatable)', collect, [])
    .option('--token-file <file>', 'file with the token (or RUNTIME_HTTP_AUTH_TOKEN)')
    .addOption(new Option('-o, --output <format>', 'how to answer').choices(outputs).default('table'))
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .addHelpText('after', example(line))
    .exitOverride()
}

function watching(verb: Command): Command {
  return verb.option('--watch', 'look again every two seconds', false)
}

function waiting(verb: Command, what: string): Command {
  return verb.option('--wait [seconds]', `wait until ${what} (60 s)`, (given) => {
    const seconds = Number(given)
    if (!Number.isFinite(seconds) || seconds <= 0) throw new InvalidArgumentError('It is a number of seconds above 0.')
    return seconds
  })
}

export function addLooking(program: Command, ended: Ended): void {
  const status = asking(
    program.command('status').description('state, readiness, lag, verdict'),
    'millrace status --wait',
  )
  watching(waiting(status, 'it is RUNNING')).action(async (options: LookArguments) => {
    const { status: run } = await import('./look.ts')
    ended(await run(options))
  })
  viewed(program, 'lag', 'lag by partition', ended)
  viewed(program, 'watermarks', 'event time, and which partition holds it', ended)
  viewed(program, 'threads', 'threads of the engine, and what each is in', ended)
  viewed(program, 'barriers', 'the commit under way, and the last ones', ended)
  viewed(program, 'config', 'the configuration in force, secrets masked', ended)
  addStores(program, ended)
  for (const verb of ['pause', 'resume'] as const) {
    const about = verb === 'pause' ? 'process what is under way, then read nothing more' : 'go on reading'
    const told = asking(program.command(verb).description(about), `millrace ${verb} --wait`)
    waiting(told, verb === 'pause' ? 'it is PAUSED' : 'it is RUNNING').action(async (options: LookArguments) => {
      const { tell } = await import('./look.ts')
      ended(await tell(verb, options))
    })
  }
  const top = asking(program.command('top').description('a live screen: rates, lanes, lag, watermark'), 'millrace top')
  top.action(async (options: LookArguments) => {
    const { top: run } = await import('./look.ts')
    ended(await run(options))
  })
  addDlq(program, ended)
  addCompletion(program)
}

function viewed(program: Command, verb: ViewedName, about: string, ended: Ended): void {
  const made = asking(program.command(verb).description(about), `millrace ${verb} --url http://localhost:8080`)
  watching(made).action(async (options: LookArguments) => ended(await lookAt(verb, options)))
}

export async function lookAt(verb: ViewedName, options: LookArguments): Promise<number> {
  const { look } = await import('./look.ts')
  return await look(verb, options)
}

function addStores(program: Command, ended: Ended): void {
  const stores = program.command('stores').description('stores: rows, bytes, restore; with a name its rows')
  watching(asking(stores, 'millrace stores late-by-origin --key SFO'))
    .argument('[store]', 'a store whose rows to show (runtime.endpoints.stores.enabled)')
    .option('--key <key>', 'rows of this key: JSON, or else plain text')
    .option('--from <key or instant>', 'first key; of windows and sessions: an instant')
    .option('--to <key or instant>', 'last one, included')
    .option('--limit <rows>', 'most rows', '100')
    .action(async (store: string | undefined, options: RowsArguments, verb: Command) => {
      if (store === undefined) refuseOfRows(verb)
      const { storeRows } = await import('./look.ts')
      ended(store === undefined ? await lookAt('stores', options) : await storeRows(store, options))
    })
}

/** Passed over, they would answer another question. */
function refuseOfRows(verb: Command): void {
  const name = ['key', 'from', 'to', 'limit'].find((option) => verb.getOptionValueSource(option) === 'cli')
  if (name === undefined) return
  throw new EngineError('USAGE', `--${name} is about the rows of one store; name it, as in millrace stores counts.`)
}

function addDlq(program: Command, ended: Ended): void {
  const group = program.command('dlq').description('dead letters: look at them, put them back').exitOverride()
  const filtered = (verb: Command, line: string, limit = '100'): Command =>
    asking(verb, line)
      .option('--reason <class>', 'only those of this class of error')
      .option('--topic <topic>', 'only those of records of this topic')
      .option('--since <instant>', 'only of this event time or later')
      .option('--until <instant>', 'only of this event time or earlier')
      .option('--limit <letters>', 'most letters of one answer', limit)
  filtered(group.command('list').description('the newest ones'), 'millrace dlq list --reason TypeError').action(
    async (options: DlqArguments) => {
      const { dlqList } = await import('./dlq.ts')
      ended(await dlqList(options))
    },
  )
  filtered(group.command('show').description('one with all it holds'), 'millrace dlq show 0:17')
    .argument('<letter>', 'partition:offset, as the list has it')
    .action(async (letter: string, options: DlqArguments) => {
      const { dlqShow } = await import('./dlq.ts')
      ended(await dlqShow(letter, options))
    })
  const redrive = group.command('redrive').description('put them back where they came from, each once')
  // Each answer begins with the oldest letter anew.
  filtered(redrive, 'millrace dlq redrive --topic orders --yes', '1000')
    .option('--yes', 'do it; without, it only says what it would do', false)
    .action(async (options: DlqArguments & { yes: boolean }) => {
      const { dlqRedrive } = await import('./dlq.ts')
      ended(await dlqRedrive(options))
    })
}

function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('completion for a shell, to be sourced')
    .addArgument(new Argument('<shell>').choices(shells))
    .addHelpText('after', '\nExample: source <(millrace completion bash)')
    .exitOverride()
    .action(async (shell: Shell) => {
      const { completionOf } = await import('./completion.ts')
      process.stdout.write(completionOf(program, shell))
    })
}
