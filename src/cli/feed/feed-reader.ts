/** Reads the lines of a feed, from a file or from standard input, without holding more than a piece of it. */
import { createReadStream, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { EngineError } from '../../base/errors.ts'

const readBytes = 256 * 1024

export interface Feed {
  readonly topic: string
  /** As it was given, for messages; `-` is standard input. */
  readonly source: string
  /** Name under which the stored lines are counted; undefined for standard input, which cannot be read again. */
  readonly mark: string | undefined
  /** Pieces of whole lines, without their ends. */
  readonly open: () => AsyncIterable<readonly string[]>
}

/** Reads `topic=file` and looks whether the file is there, so that a slip shows before anything runs. */
export function parseFeed(option: string): Feed {
  const at = option.indexOf('=')
  if (at < 1 || at === option.length - 1) {
    throw new EngineError('USAGE', `--feed takes topic=file, or topic=- for standard input, not '${option}'.`)
  }
  const topic = option.slice(0, at)
  const source = option.slice(at + 1)
  if (source === '-') return { topic, source, mark: undefined, open: () => readLines(process.stdin, 'standard input') }
  const stats = statSync(source, { throwIfNoEntry: false })
  if (!stats) throw new EngineError('FEED_INVALID', `The file '${source}' of --feed ${option} does not exist.`)
  if (stats.isDirectory()) {
    throw new EngineError('FEED_INVALID', `'${source}' of --feed ${option} is a folder; name a file of JSON lines.`)
  }
  const open = (): AsyncIterable<string[]> => readLines(createReadStream(source, { highWaterMark: readBytes }), source)
  return { topic, source, mark: resolve(source), open }
}

/** Pieces of whole lines, without their ends. The last line needs none. */
export async function* readLines(input: Readable, name: string): AsyncGenerator<string[]> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  let first = true
  try {
    for await (const chunk of input) {
      let text = rest + (typeof chunk === 'string' ? chunk : decoder.write(chunk as Buffer))
      if (first && text.length > 0) {
        text = text.replace(/^\ufeff/, '')
        first = false
      }
      const lines = text.split('\n')
      rest = lines.pop() as string
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new EngineError('FEED_INVALID', `The feed '${name}' cannot be read (${code}).`, { cause: error })
  }
  rest += decoder.end()
  if (rest !== '') yield [rest]
}
