/** Reads the lines of a feed, from a file or from standard input, without holding more than a piece of it. */
import { isUtf8 } from 'node:buffer'
import { createReadStream, realpathSync, statSync } from 'node:fs'
import { resolve, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { EngineError } from '../../base/errors.ts'
import { FeedLineError } from './feed-lines.ts'

const readBytes = 256 * 1024
const newline = 10
/** Below these are the files that are open in this process, by number. */
const passedIn = ['dev', 'proc'].map((name) => `${sep}${name}${sep}`)

export interface Feed {
  readonly topic: string
  /** As it was given, for messages; `-` is standard input. */
  readonly source: string
  /** Name under which the stored lines are counted; undefined for what cannot be read again, as standard input or a pipe. */
  readonly mark: string | undefined
  /** Pieces of whole lines, without their ends. */
  readonly open: () => AsyncIterable<readonly string[]>
}

/** Each `topic=file`, of which one alone may be standard input: what one feed took the next would not get. */
export function parseFeeds(options: readonly string[]): Feed[] {
  const feeds = options.map(parseFeed)
  const ofInput = options.filter((_, i) => feeds[i]?.source === '-')
  if (ofInput.length < 2) return feeds
  const given = ofInput.map((option) => `--feed ${option}`).join(' and ')
  throw new EngineError(
    'USAGE',
    `${given} both read standard input, which can be read once: name a file for one of them.`,
  )
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
  return { topic, source, mark: stats.isFile() ? markOf(source) : undefined, open }
}

/** What the shell passes in (`/dev/stdin`, `/dev/fd/3`) is another file each time: the file itself is meant. */
function markOf(source: string): string {
  const path = resolve(source)
  return passedIn.some((folder) => path.startsWith(folder)) ? realpathSync(path) : path
}

/** Pieces of whole lines, without their ends. The last line needs none. */
export async function* readLines(input: Readable, name: string): AsyncGenerator<string[]> {
  /** Of the line whose end has not come. */
  let rest: Buffer[] = []
  const lines = new Lines(name)
  try {
    for await (const chunk of input) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
      const end = bytes.lastIndexOf(newline) + 1
      if (end > 0) {
        yield* lines.of(Buffer.concat([...rest, bytes.subarray(0, end - 1)]))
        rest = []
      }
      if (end < bytes.length) rest.push(bytes.subarray(end))
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || EngineError.is(error)) throw error
    throw new EngineError('FEED_INVALID', `The feed '${name}' cannot be read (${code}).`, { cause: error })
  }
  if (rest.length > 0) yield* lines.of(Buffer.concat(rest))
}

class Lines {
  // What is no UTF-8 is not replaced: keys that differ would become one.
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  readonly #name: string
  #count = 0

  constructor(name: string) {
    this.#name = name
  }

  /** Lines before one that is no text come first, as those before one that is malformed. */
  *of(bytes: Buffer): Generator<string[]> {
    let text: string
    try {
      text = this.#decoder.decode(bytes)
    } catch (cause) {
      const before = this.#before(bytes)
      if (before.length > 0) yield before
      throw new FeedLineError(this.#name, this.#count + before.length + 1, 'is no text in UTF-8', cause)
    }
    const lines = (this.#count === 0 ? text.replace(/^\ufeff/, '') : text).split('\n')
    this.#count += lines.length
    yield lines
  }

  #before(bytes: Buffer): string[] {
    const lines: string[] = []
    for (let at = 0; ; ) {
      const end = bytes.indexOf(newline, at)
      const line = bytes.subarray(at, end < 0 ? bytes.length : end)
      if (!isUtf8(line)) return lines
      lines.push(line.toString())
      at = end + 1
    }
  }
}
