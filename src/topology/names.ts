/**
 * Names of operators, stores and topics, as Kafka Streams gives them: a prefix and a ten-digit number from one counter.
 */
const repartitionSuffix = '-repartition'
const generatedPrefix = /^KSTREAM.*-[0-9]{10}$/
const valid = /^[a-zA-Z0-9._-]+$/

/** The counter of a topology. Explicit names use up their number, too, so that naming one operator renames no other. */
export class Names {
  #next = 0

  generate(prefix: string): string {
    return prefix + String(this.#next++).padStart(10, '0')
  }

  store(prefix: string): string {
    return this.generate(`${prefix}STATE-STORE-`)
  }

  /** The explicit name, or a generated one. The number is used up either way. */
  orGenerate(name: string | undefined, prefix: string): string {
    const generated = this.generate(prefix)
    return name ?? generated
  }

  suffixOrGenerate(name: string | undefined, suffix: string, prefix: string): string {
    const generated = this.generate(prefix)
    return name === undefined ? generated : name + suffix
  }
}

export interface RepartitionNames {
  /** The name that the topic and the nodes are derived from. */
  readonly base: string
  readonly topic: string
  readonly sink: string
  readonly filter: string
  readonly source: string
}

/** Always uses up three numbers. */
export function repartitionNames(names: Names, base: string): RepartitionNames {
  const topic = base.endsWith(repartitionSuffix) ? base : base + repartitionSuffix
  const sink = names.generate('KSTREAM-SINK-')
  const filter = names.generate('KSTREAM-FILTER-')
  const source = names.generate('KSTREAM-SOURCE-')
  if (generatedPrefix.test(base)) return { base, topic, sink, filter, source }
  return { base, topic, sink: `${topic}-sink`, filter: `${topic}-filter`, source: `${topic}-source` }
}

/** A sentence that says what is wrong with a name; undefined where it is fine. */
export function nameFault(name: unknown): string | undefined {
  if (typeof name !== 'string') return `a name is a text, and ${JSON.stringify(name) ?? String(name)} is none`
  if (name.length === 0) return 'a name must not be empty'
  if (name.length > 249) return `the name ${name} is longer than 249 characters`
  if (name === '.' || name === '..') return `"${name}" is not a name`
  if (!valid.test(name)) return `the name ${JSON.stringify(name)} may hold only letters, digits, ".", "_" and "-"`
  return undefined
}
