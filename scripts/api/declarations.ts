/**
 * Reads type declarations as the compiler writes them: statements, members, and the documentation above each. It relies on
 * the compiler's layout and on nothing else, so it needs no compiler interface.
 */

export interface Statement {
  /** The documentation comment right above, without its frame; empty where there is none. */
  readonly doc: string
  readonly text: string
}

export interface Member {
  readonly name: string
  readonly kind: 'method' | 'property' | 'constructor'
  readonly doc: string
  /** One, or one for each overload. */
  readonly signatures: readonly string[]
  readonly optional: boolean
}

export type Kind = 'class' | 'interface' | 'type' | 'function' | 'const'

export interface Declaration {
  readonly name: string
  readonly kind: Kind
  readonly doc: string
  /** The whole text; of functions, one for each overload. */
  readonly signatures: readonly string[]
  /** What stands before the body: `class Stream<K, V>`, `interface Branch<K, V> extends Named`. */
  readonly head: string
  /** Own members, and those of bases that the same file keeps to itself. */
  readonly members: readonly Member[]
}

const opening = '({['
const closing = ')}]'

/** Where a string, a template or a comment that begins at `at` ends; `at` itself where none begins. */
function skipped(text: string, at: number): number {
  const quote = text[at] as string
  if (text.startsWith('/*', at)) return text.indexOf('*/', at) + 2
  if (text.startsWith('//', at)) {
    const end = text.indexOf('\n', at)
    return end < 0 ? text.length : end
  }
  if (quote !== "'" && quote !== '"' && quote !== '`') return at
  let end = at + 1
  while (end < text.length && text[end] !== quote) end += text[end] === '\\' ? 2 : 1
  return end + 1
}

/** Where the statement that begins at `from` ends. Types with a body end with it, everything else with a semicolon. */
function endOf(text: string, from: number): number {
  const withBody = /^(export )?(declare )?(abstract )?(class|interface)\b/.test(text.slice(from, from + 60))
  let depth = 0
  for (let i = from; i < text.length; i++) {
    const after = skipped(text, i)
    if (after > i) {
      i = after - 1
      continue
    }
    const char = text[i] as string
    if (opening.includes(char)) depth++
    if (closing.includes(char) && --depth === 0 && withBody && char === '}') return i + 1
    if (char === ';' && depth === 0) return i + 1
  }
  return text.length
}

/** The text of a documentation comment without its frame. */
export function unframed(comment: string): string {
  const body = comment.replace(/^\/\*\*/, '').replace(/\*\/$/, '')
  const lines = body.split('\n').map((line, i) => (i === 0 ? line.trim() : line.replace(/^\s*\* ?/, '').trimEnd()))
  return lines.join('\n').trim()
}

/** The statements of a module, or of the inside of a body. */
export function statementsOf(text: string): Statement[] {
  const found: Statement[] = []
  let doc = ''
  for (let i = 0; i < text.length; i++) {
    if (/\s/.test(text[i] as string)) continue
    if (text.startsWith('/*', i) || text.startsWith('//', i)) {
      const end = skipped(text, i)
      if (text.startsWith('/**', i)) doc = unframed(text.slice(i, end))
      i = end - 1
      continue
    }
    const end = endOf(text, i)
    found.push({ doc, text: text.slice(i, end) })
    doc = ''
    i = end - 1
  }
  return found
}

const memberShape = /^((?:static |readonly |abstract |get |set )*)([\w$]+|\[[^\]]+\])(\?)?\s*([(<:])/

/** Members that others may use: without private and protected ones, and without those named by a symbol. */
export function membersOf(body: string): Member[] {
  const found: Array<Member & { signatures: string[] }> = []
  for (const { doc, text } of statementsOf(body)) {
    if (/^(#private|private |protected |\[)/.test(text) || /^readonly \[/.test(text)) continue
    const match = memberShape.exec(text)
    if (match === null) continue
    const [, modifiers = '', name = '', optional, next] = match
    const kind =
      name === 'constructor' ? 'constructor' : next === ':' || /[gs]et /.test(modifiers) ? 'property' : 'method'
    const signature = dedent(text.replace(/;$/, ''))
    const last = found.at(-1)
    if (last?.name === name && kind !== 'property' && doc === '') last.signatures.push(signature)
    else found.push({ name, kind, doc, signatures: [signature], optional: optional !== undefined })
  }
  return found
}

/** Takes the indentation of the body away from all lines but the first. */
function dedent(text: string): string {
  const lines = text.split('\n')
  const indents = lines.slice(1).map((line) => /^ */.exec(line)?.[0].length ?? 0)
  const least = indents.length === 0 ? 0 : Math.min(...indents)
  return lines.map((line, i) => (i === 0 ? line : line.slice(least))).join('\n')
}

interface Raw {
  readonly kind: Kind
  readonly doc: string
  readonly texts: string[]
  readonly isExported: boolean
}

const declarationShape = /^(export )?(?:declare )?(?:abstract )?(class|interface|type|function|const) ([\w$]+)/

/** Every declaration of a module by name, whether it is exported or not. */
export function declarationsOf(text: string): Map<string, Declaration> {
  const statements = new Map<string, Raw>()
  for (const { doc, text: statement } of statementsOf(text)) {
    const match = declarationShape.exec(statement)
    if (match === null) continue
    const [, exported, kind, name = ''] = match
    const known = statements.get(name)
    const shown = statement.replace(/^export /, '').replace(/^declare /, '')
    if (known) known.texts.push(shown)
    else statements.set(name, { kind: kind as Kind, doc, texts: [shown], isExported: exported !== undefined })
  }
  const found = new Map<string, Declaration>()
  for (const [name, { kind, doc, texts }] of statements) {
    const [first = ''] = texts
    const body = bodyOf(first, kind)
    const head = body === undefined ? first : first.slice(0, first.indexOf('{')).trim()
    const members = body === undefined ? [] : membersOf(body)
    found.set(name, { name, kind, doc, signatures: texts, head, members: [...members, ...inherited(head, statements)] })
  }
  return found
}

function bodyOf(text: string, kind: Kind): string | undefined {
  const isTable = kind === 'const' && /^const \w+: \{/.test(text)
  if (kind !== 'class' && kind !== 'interface' && !isTable) return undefined
  return text.slice(text.indexOf('{') + 1, text.lastIndexOf('}'))
}

/** The members of bases that are not exported: nobody can look them up elsewhere. */
function inherited(head: string, statements: ReadonlyMap<string, Raw>): readonly Member[] {
  const bases = /\bextends (.+)$/s.exec(head)?.[1] ?? ''
  return [...bases.matchAll(/[\w$]+/g)].flatMap(([name]) => {
    const base = statements.get(name)
    if (base === undefined || base.isExported) return []
    const body = bodyOf(base.texts[0] ?? '', base.kind)
    return body === undefined ? [] : membersOf(body).filter((member) => member.kind !== 'constructor')
  })
}
