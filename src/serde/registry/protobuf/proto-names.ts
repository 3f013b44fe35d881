/** Which message a record's indexes mean: read from the text of a `.proto` file, of which only the messages matter. */
interface Scope {
  readonly messages: Message[]
}

interface Message extends Scope {
  readonly name: string
}

const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g
const literal = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g
const word = /[A-Za-z_][\w.]*|[{};]/g

/** The messages of a file, each with those inside of it, in the order of the text. */
export class ProtoNames {
  readonly #package: string
  readonly #file: Scope = { messages: [] }

  constructor(text: string) {
    const plain = text.replace(literal, '""').replace(comment, ' ')
    this.#package = /(?:^|[;\s])package\s+([\w.]+)\s*;/.exec(plain)?.[1] ?? ''
    const words = plain.match(word) ?? []
    const scopes: Array<Scope | undefined> = [this.#file]
    for (let i = 0; i < words.length; i++) {
      if (words[i] === '}') scopes.pop()
      if (words[i] !== '{') continue
      const around = scopes.at(-1)
      const isMessage = words[i - 2] === 'message' && around !== undefined
      const message: Message = { name: words[i - 1] ?? '', messages: [] }
      if (isMessage) around.messages.push(message)
      // What is inside of a oneof or an enum is no place for messages.
      scopes.push(isMessage ? message : undefined)
    }
  }

  /** Full names of all messages, each in front of those inside of it. */
  get all(): string[] {
    const inside = ({ messages }: Scope, around: string): string[] =>
      messages.flatMap((message) => {
        const name = around === '' ? message.name : `${around}.${message.name}`
        return [name, ...inside(message, name)]
      })
    return inside(this.#file, this.#package)
  }

  /** Full name of the message at these indexes; undefined where there is none. */
  at(indexes: readonly number[]): string | undefined {
    const names = this.#package === '' ? [] : [this.#package]
    let scope: Scope = this.#file
    for (const index of indexes) {
      const message = scope.messages[index]
      if (message === undefined) return undefined
      names.push(message.name)
      scope = message
    }
    return names.join('.')
  }
}

/** Zig-zag integers of variable length, as they stand in front of a message. */
export function writeIndexes(indexes: readonly number[]): Uint8Array {
  if (indexes.length === 1 && indexes[0] === 0) return Uint8Array.of(0)
  const bytes: number[] = []
  for (const value of [indexes.length, ...indexes]) {
    let left = value * 2
    while (left > 127) {
      bytes.push((left & 127) | 128)
      left = Math.floor(left / 128)
    }
    bytes.push(left)
  }
  return Uint8Array.from(bytes)
}

export interface Indexes {
  readonly indexes: readonly number[]
  /** Where the message begins. */
  readonly next: number
}

const first: readonly number[] = [0]
const mostIndexes = 64

export function readIndexes(bytes: Uint8Array, start: number, end: number): Indexes | undefined {
  let at = start
  const next = (): number => {
    let value = 0
    for (let shift = 0; at < end && shift < 35; shift += 7) {
      const byte = bytes[at++] as number
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
    }
    return -1
  }
  const count = next()
  if (count === 0) return { indexes: first, next: at }
  if (count < 0 || count > mostIndexes) return undefined
  const indexes: number[] = []
  for (let i = 0; i < count; i++) {
    const index = next()
    if (index < 0) return undefined
    indexes.push(index)
  }
  return { indexes, next: at }
}
