/** The messages of `.proto` files, as far as bytes depend on them. */

export interface ProtoField {
  readonly name: string
  readonly number: number
  /** As it stands in the text: a scalar, or the name of a message or an enum. Of a map `map`. */
  readonly type: string
  readonly label: 'required' | 'optional' | 'repeated' | ''
  readonly oneof: string | undefined
  /** Of a map: its key and its value. */
  readonly entry: readonly [key: string, value: string] | undefined
  /** What the text says of packing; undefined: nothing. */
  readonly packed: boolean | undefined
}

export interface ProtoMessage {
  /** With the package and the messages around it. */
  readonly name: string
  readonly fields: readonly ProtoField[]
  readonly reservedNumbers: ReadonlyArray<readonly [from: number, to: number]>
  readonly reservedNames: readonly string[]
}

export interface ProtoSchema {
  readonly isProto2: boolean
  /** Those of the file itself that stand in no other message. */
  readonly outermost: readonly string[]
  readonly messages: ReadonlyMap<string, ProtoMessage>
  readonly enums: ReadonlySet<string>
}

/** The text is no `.proto` file. */
class ProtoTextError extends Error {
  override readonly name = 'ProtoTextError'
}

const token = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[.\w]+|[-+]|[{}[\]()<>=;,:]/g
const largestNumber = 536_870_911

/** A file and those that it imports. Throws where a text is no `.proto` file. */
export function parseProto(text: string, imports: readonly string[] = []): ProtoSchema {
  const messages = new Map<string, ProtoMessage>()
  const enums = new Set<string>()
  for (const each of imports) new Parser(each, messages, enums).file()
  const own = new Parser(text, messages, enums)
  own.file()
  return { isProto2: own.isProto2, outermost: own.outermost, messages, enums }
}

interface Draft {
  readonly name: string
  readonly fields: ProtoField[]
  readonly reservedNumbers: Array<readonly [number, number]>
  readonly reservedNames: string[]
}

class Parser {
  readonly #tokens: readonly string[]
  readonly #messages: Map<string, ProtoMessage>
  readonly #enums: Set<string>
  readonly outermost: string[] = []
  isProto2 = true
  #at = 0
  #package = ''

  constructor(text: string, messages: Map<string, ProtoMessage>, enums: Set<string>) {
    this.#tokens = (text.match(token) ?? []).filter((each) => !each.startsWith('//') && !each.startsWith('/*'))
    this.#messages = messages
    this.#enums = enums
  }

  file(): void {
    while (this.#at < this.#tokens.length) {
      const word = this.#next()
      switch (word) {
        case 'syntax':
        case 'edition':
          this.#expect('=')
          this.isProto2 = unquoted(this.#next()) === 'proto2'
          this.#expect(';')
          break
        case 'package':
          this.#package = this.#next()
          this.#expect(';')
          break
        case 'message':
          this.outermost.push(this.#message(this.#package))
          break
        case 'enum':
          this.#enum(this.#package)
          break
        case ';':
          break
        case 'service':
        case 'extend':
        case 'import':
        case 'option':
          this.#skip()
          break
        default:
          throw new ProtoTextError(`'${word}' where a message or an enum may stand`)
      }
    }
  }

  #next(): string {
    const word = this.#tokens[this.#at++]
    if (word === undefined) throw new ProtoTextError('the text ends in the middle')
    return word
  }

  #expect(what: string): void {
    const found = this.#next()
    if (found !== what) throw new ProtoTextError(`'${found}' where '${what}' has to stand`)
  }

  /** Behind the next semicolon, or behind what is in braces. */
  #skip(): void {
    for (let depth = 0; ; ) {
      const word = this.#next()
      if (word === '{') depth++
      if (word === '}' && --depth === 0 && this.#tokens[this.#at] !== ';') return
      if (word === ';' && depth === 0) return
    }
  }

  #message(around: string): string {
    const name = this.#next()
    return this.#body(around === '' ? name : `${around}.${name}`)
  }

  #body(name: string): string {
    const draft: Draft = { name, fields: [], reservedNumbers: [], reservedNames: [] }
    this.#messages.set(name, draft)
    this.#expect('{')
    for (let word = this.#next(); word !== '}'; word = this.#next()) this.#part(draft, word)
    return name
  }

  #part(draft: Draft, word: string): void {
    const second = this.#tokens[this.#at + 1]
    if (word === 'message' && second === '{') this.#message(draft.name)
    else if (word === 'enum' && second === '{') this.#enum(draft.name)
    else if (word === 'oneof' && second === '{') this.#oneof(draft)
    else if (word === 'reserved') this.#reserved(draft)
    else if (word === 'option' || word === 'extensions' || word === 'extend') this.#skip()
    else if (word !== ';') this.#field(draft, word, undefined)
  }

  #oneof(draft: Draft): void {
    const name = this.#next()
    this.#expect('{')
    for (let word = this.#next(); word !== '}'; word = this.#next()) {
      if (word === 'option') this.#skip()
      else if (word !== ';') this.#field(draft, word, name)
    }
  }

  #field(draft: Draft, first: string, oneof: string | undefined): void {
    const isLabel = first === 'required' || first === 'optional' || first === 'repeated'
    const label = isLabel ? first : ''
    const type = isLabel ? this.#next() : first
    let entry: [string, string] | undefined
    if (type === 'map' && this.#tokens[this.#at] === '<') {
      this.#expect('<')
      const key = this.#next()
      this.#expect(',')
      entry = [key, this.#next()]
      this.#expect('>')
    }
    const name = this.#next()
    this.#expect('=')
    const number = Number(this.#next())
    if (!Number.isInteger(number)) throw new ProtoTextError(`the field ${name} of ${draft.name} has no number`)
    const options = this.#options()
    const packed = /packed=(true|false)/.exec(options)?.[1]
    const isGroup = type === 'group'
    draft.fields.push({
      name: isGroup ? name.toLowerCase() : name,
      number,
      type: isGroup ? `group ${draft.name}.${name}` : type,
      label,
      oneof,
      entry,
      packed: packed === undefined ? undefined : packed === 'true',
    })
    if (isGroup) this.#body(`${draft.name}.${name}`)
    else this.#expect(';')
  }

  /** What stands in brackets, as one text. */
  #options(): string {
    if (this.#tokens[this.#at] !== '[') return ''
    const from = this.#at
    for (let depth = 0; ; ) {
      const word = this.#next()
      if (word === '[') depth++
      if (word === ']' && --depth === 0) return this.#tokens.slice(from, this.#at).join('')
    }
  }

  #reserved({ reservedNumbers, reservedNames }: Draft): void {
    for (let word = this.#next(); word !== ';'; word = this.#next()) {
      if (word === ',') continue
      if (/^\d/.test(word)) {
        const isRange = this.#tokens[this.#at] === 'to'
        if (isRange) this.#at++
        const to = isRange ? this.#next() : word
        reservedNumbers.push([Number(word), to === 'max' ? largestNumber : Number(to)])
      } else reservedNames.push(unquoted(word))
    }
  }

  #enum(around: string): void {
    const name = this.#next()
    this.#enums.add(around === '' ? name : `${around}.${name}`)
    this.#expect('{')
    for (let depth = 1; depth > 0; ) {
      const word = this.#next()
      if (word === '{') depth++
      if (word === '}') depth--
    }
  }
}

function unquoted(word: string): string {
  return /^["']/.test(word) ? word.slice(1, -1) : word
}
