/** `millrace dlq`: dead letters, and their way back. */
import type { DeadLetter, DeadLetters, Redriven } from '../../http/data-seam.ts'
import { ask, type Pod, podsOf } from './ask.ts'
import { each, type LookArguments } from './look.ts'
import { pairsText, tableText } from './table-text.ts'
import { text } from './views.ts'

export interface DlqArguments extends LookArguments {
  readonly reason?: string
  readonly topic?: string
  readonly since?: string
  readonly until?: string
  readonly limit: string
}

/** The process asks its broker, for as long as that goes on answering: longer than it waits for one that does not. */
const timeoutMs = 240_000

function queryOf({ reason, topic, since, until, limit }: DlqArguments): URLSearchParams {
  const query = new URLSearchParams({ limit })
  for (const [name, value] of Object.entries({ reason, topic, since, until })) {
    if (value !== undefined) query.set(name, value)
  }
  return query
}

export function dlqList(args: DlqArguments): Promise<number> {
  return each(args, (pod) => ask<DeadLetters>(pod, `/dead-letters?${queryOf(args)}`, 'GET', { timeoutMs }), listText)
}

function listText({ topic, letters, seen, more, byReason }: DeadLetters): string {
  const table = tableText(letters, [
    { name: 'LETTER', cell: ({ partition, offset }) => `${partition}:${offset}` },
    { name: 'TIME', cell: ({ timestamp }) => timestamp.slice(0, 19) },
    { name: 'REASON', cell: ({ reason }) => reason },
    {
      name: 'RECORD',
      cell: ({ source }) => (source === null ? '-' : `${source.topic}:${source.partition}@${source.offset}`),
    },
    { name: 'BACK', cell: ({ redriven }) => (redriven ? 'yes' : '') },
    { name: 'MESSAGE', cell: ({ message }) => message },
  ])
  const reasons = Object.entries(byReason).map(([name, count]) => `${name} ${count}`)
  const among = more ? ` among the newest ${seen}; there are older ones` : ''
  return `${table}${topic}: ${reasons.join(', ') || 'none'}${among}\n`
}

/** `letter`: `partition:offset`, as the list has it. */
export function dlqShow(letter: string, args: DlqArguments): Promise<number> {
  const question = async (pod: Pod): ReturnType<typeof ask<DeadLetter>> => {
    const path = `/dead-letters?${queryOf({ ...args, limit: '1000' })}`
    const answer = await ask<DeadLetters>(pod, path, 'GET', { timeoutMs })
    if (!answer.ok) return answer
    const found = answer.value.letters.find(({ partition, offset }) => `${partition}:${offset}` === letter)
    if (found !== undefined) return { ok: true, value: found }
    const reason = `there is no letter ${letter} among the newest ones; 'millrace dlq list' shows them.`
    return { ok: false, status: 404, reason }
  }
  return each(args, question, ({ headers, ...rest }) =>
    pairsText([
      ...Object.entries(rest).map(([name, value]) => [name, text(value)] as const),
      ...headers.map(([name, value]) => [`header ${name.replace('__streams.errors.', '')}`, text(value)] as const),
    ]),
  )
}

/** Says what it would do; with `--yes` does it, until nothing is left. */
export async function dlqRedrive(args: DlqArguments & { readonly yes: boolean }): Promise<number> {
  const [pod] = podsOf(args)
  const one = { ...args, url: [String(pod?.url)] }
  return each(
    one,
    (each) => (args.yes ? untilDone(each, args) : once(each, args, true)),
    (done) => {
      const { dryRun, matched, redriven, already, gone, more } = done
      const why = gone > 0 ? '\nOf what cannot be put back the record is gone, or of a repartition topic.' : ''
      const counts = `${matched} fit; ${already} were put back before; ${gone} cannot be.${why}`
      if (!dryRun) return `${redriven} put back. ${counts}\n`
      return `${redriven}${more ? ' and more' : ''} would be put back. ${counts}\nNothing was done: --yes puts them back.\n`
    },
  )
}

function once(pod: Pod, args: DlqArguments, dryRun: boolean, ends?: string): ReturnType<typeof ask<Redriven>> {
  const query = queryOf(args)
  query.set('dry-run', String(dryRun))
  // As it is, for its marks would take three times their room: partitions by the hundred fit into an address.
  const bound = ends === undefined ? '' : `&ends=${ends}`
  return ask<Redriven>(pod, `/dead-letters/redrive?${query}${bound}`, 'POST', { timeoutMs })
}

async function untilDone(pod: Pod, args: DlqArguments): ReturnType<typeof ask<Redriven>> {
  let redriven = 0
  let ends: string | undefined
  for (;;) {
    const answer = await once(pod, args, false, ends)
    if (!answer.ok) {
      if (redriven > 0) process.stderr.write(`millrace: ${redriven} are put back already; ask again for the rest.\n`)
      if (answer.reached !== true) return answer
      const again = 'Letters may have been put back all the same; ask again, which puts none back twice.'
      return { ...answer, reason: `${answer.reason} ${again}` }
    }
    redriven += answer.value.redriven
    ends = answer.value.ends
    if (!answer.value.more) {
      // Of the last call, letters that the earlier ones put back were put back before.
      const already = answer.value.already - (redriven - answer.value.redriven)
      return { ok: true, value: { ...answer.value, redriven, already } }
    }
  }
}
