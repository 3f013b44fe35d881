/** The verbs and options of `millrace ha`. */
import { type Command, InvalidArgumentError } from 'commander'
import { parseSetting } from '../cli-options.ts'
import type { HaArguments } from './ha.ts'
import type { HaOptions, HaVerb } from './ha-client.ts'

const help = `
The pod that is asked: --url, else runtime.http.host and runtime.http.port of the configuration. Any pod of the group
can be asked. A token that protects the interface comes from runtime.http.auth.token or its file, as a pod has it.

With --wait a command ends once its result can be seen: exit code 0, or 1 with a sentence where it was refused, rolled
back, or took longer than the seconds given (60 without a number).`

export function addHa(program: Command, ended: (code: number) => void): void {
  const group = program
    .command('ha')
    .description('look at a hot-standby group, and say who is to be active')
    .addHelpText('after', help)
    .exitOverride()
  common(group.command('status'), 'wait until one pod is active and enough standbys are ready')
    .description('show all pods: role, state, lag')
    .action(async (options: HaArguments) => {
      const { haStatus } = await import('./ha.ts')
      ended(await haStatus(options))
    })
  command(group.command('switch'), 'wait until another pod is active')
    .description('hand the active role to a ready standby')
    .action(async (options: CommandArguments) => ended(await send('switch', undefined, options)))
  command(group.command('promote'), 'wait until the pod is active')
    .description('hand the active role to the pod that is named')
    .argument('<pod>', 'the standby to promote')
    .action(async (pod: string, options: CommandArguments) => ended(await send('promote', pod, options)))
  command(group.command('demote'), 'wait until another pod is active')
    .description('take the active role from the pod that is named')
    .argument('<pod>', 'the pod that is active')
    .action(async (pod: string, options: CommandArguments) => ended(await send('demote', pod, options)))
  addMaintenance(group, ended)
}

function addMaintenance(group: Command, ended: (code: number) => void): void {
  common(group.command('history'), undefined)
    .description('who became active, when and why')
    .action(async (options: HaArguments) => {
      const { haHistory } = await import('./ha.ts')
      ended(await haHistory(options))
    })
  common(group.command('pause'), 'wait until it holds')
    .description('maintenance: from now on nobody takes over by itself')
    .action(async (options: HaArguments) => ended(await send('pause', undefined, options)))
  common(group.command('resume'), 'wait until it holds')
    .description('end the maintenance: failover is automatic again')
    .action(async (options: HaArguments) => ended(await send('resume', undefined, options)))
  common(group.command('priority'), 'wait until it holds')
    .description('set the failover priority of a pod without a restart')
    .argument('<pod>', 'the pod')
    .argument('<value>', "a whole number; 0: it never takes over by itself; 'default': as it is configured")
    .action(async (pod: string, value: string, options: HaArguments) =>
      ended(await send('priority', pod, { ...options, value })),
    )
}

type CommandArguments = HaArguments & { readonly force: boolean }

async function send(verb: HaVerb, pod: string | undefined, options: HaArguments & HaOptions): Promise<number> {
  const { haCommand } = await import('./ha.ts')
  return await haCommand(verb, pod, options)
}

function common(verb: Command, wait: string | undefined): Command {
  const patient = wait === undefined ? verb : verb.option('--wait [seconds]', wait, parseSeconds)
  return patient
    .option('--url <address>', 'the HTTP interface of a pod, as in http://localhost:8080')
    .option('--json', 'answer as JSON', false)
    .option('--config <file>', 'configuration as YAML')
    .option('--set <key=value>', 'one configuration key (repeatable)', parseSetting, [])
    .exitOverride()
}

function command(verb: Command, wait: string): Command {
  return common(verb, wait).option(
    '--force',
    'also where no standby is ready; it restores fully before it processes',
    false,
  )
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (!Number.isFinite(seconds) || seconds <= 0) throw new InvalidArgumentError('It is a number of seconds above 0.')
  return seconds
}
