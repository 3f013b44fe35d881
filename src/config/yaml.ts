/** YAML for people and older programs. */
import { isScalar, parseDocument, stringify, visit } from 'yaml'
import { EngineError } from '../base/errors.ts'

/** YAML 1.1 takes `off` and `yes` for booleans: such words are quoted. */
export function yamlOf(value: unknown): string {
  return stringify(value, { compat: 'yaml-1.1', lineWidth: 0 })
}

/** A number or a truth value that a file spells in its own way: `0123` is a password to whoever wrote it without quotes. */
export class Unquoted {
  readonly value: number | boolean
  readonly text: string

  constructor(value: number | boolean, text: string) {
    this.value = value
    this.text = text
  }
}

/**
 * What a file holds; under keys an `Unquoted` where the value alone would not tell how it is written.
 *
 * @throws YAMLParseError, EngineError CONFIG_INVALID
 */
export function readYaml(text: string): unknown {
  const document = parseDocument(text)
  const [fault] = document.errors
  if (fault !== undefined) throw fault
  visit(document, {
    Seq: () => visit.SKIP,
    Pair: (_, { value: node }) => {
      if (!isScalar(node) || node.source === undefined) return
      const { value, source } = node
      const isSpelled = (typeof value === 'number' || typeof value === 'boolean') && String(value) !== source
      if (isSpelled) node.value = new Unquoted(value, source)
    },
  })
  const tree: unknown = document.toJS()
  if (holdsItself(tree)) throw new EngineError('CONFIG_INVALID', 'an alias names a part of the file that it lies in')
  return tree
}

function holdsItself(tree: unknown): boolean {
  try {
    JSON.stringify(tree)
    return false
  } catch {
    // Nothing else in YAML is more than JSON can say.
    return true
  }
}
