/** Completion for shells, made of the commands themselves. */
import type { Command } from 'commander'

export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

interface Known {
  /** `ha status`; empty for the command itself. */
  readonly path: string
  readonly verbs: ReadonlyArray<readonly [name: string, about: string]>
  readonly options: ReadonlyArray<readonly [name: string, about: string]>
}

export function completionOf(program: Command, shell: Shell): string {
  const known = walk(program, '')
  if (shell === 'fish') return fish(known)
  const script = bash(known)
  return shell === 'bash' ? script : `#compdef millrace\nautoload -U +X bashcompinit && bashcompinit\n${script}`
}

function walk(command: Command, path: string): Known[] {
  const inner = command.commands
  const own: Known = {
    path,
    verbs: inner.map((each) => [each.name(), each.description()]),
    options: command.options.flatMap(({ long, description }) => (long ? [[long, description] as const] : [])),
  }
  return [own, ...inner.flatMap((each) => walk(each, path === '' ? each.name() : `${path} ${each.name()}`))]
}

const words = (known: Known): string => [...known.verbs, ...known.options].map(([name]) => name).join(' ')

function bash(known: readonly Known[]): string {
  const cases = known.map((each) => `    '${each.path}') words='${words(each)}' ;;`)
  const paths = known.map(({ path }) => `'${path}'`).join(' | ')
  return `_millrace() {
  local path="" next words word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="\${path:+$path }$word"
    case "$next" in ${paths}) path="$next" ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _millrace millrace
`
}

function fish(known: readonly Known[]): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`
  const lines = known.flatMap(({ path, verbs, options }) => {
    const inside = path.split(' ').filter(Boolean)
    const seen = inside.map((word) => `__fish_seen_subcommand_from ${word}`)
    const names = verbs.map(([name]) => name).join(' ')
    const here = inside.length === 0 ? ['__fish_use_subcommand'] : [...seen, `not __fish_seen_subcommand_from ${names}`]
    const of = (conditions: readonly string[]): string =>
      conditions.length === 0 ? '' : ` -n ${quoted(conditions.join('; and '))}`
    return [
      ...verbs.map(([name, about]) => `complete -c millrace -f${of(here)} -a ${name} -d ${quoted(about)}`),
      ...options.map(([name, about]) => `complete -c millrace${of(seen)} -l ${name.slice(2)} -d ${quoted(about)}`),
    ]
  })
  return `${lines.join('\n')}\n`
}
