/**
 * A strict reader of the Prometheus text format 0.0.4: what `promtool check metrics` complains of is an error here, and
 * so is every departure from the order this interface promises.
 */
export interface PrometheusSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface PrometheusFamily {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: PrometheusSample[]
}

const types = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])

export function readPrometheus(text: string): PrometheusFamily[] {
  const families: PrometheusFamily[] = []
  const fail = (line: string, why: string): never => {
    throw new SyntaxError(`${why}: ${line}`)
  }
  if (!text.endsWith('\n')) fail('', 'the text does not end with a line end')
  const lines = text.slice(0, -1).split('\n')
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line)
    if (help !== null) {
      const [, name = '', words = ''] = help
      const type = /^# TYPE (\S+) (\S+)$/.exec(lines[++i] ?? '')
      if (type?.[1] !== name || !types.has(type[2] ?? '')) fail(lines[i] ?? '', 'HELP without TYPE behind it')
      if (families.some((family) => family.name === name)) fail(line, 'a family twice')
      if (/[^\\]\\[^\\n]/.test(words)) fail(line, 'a bad escape')
      families.push({ name, type: type?.[2] ?? '', help: words, samples: [] })
      continue
    }
    const family = families.at(-1)
    const sample = readSample(line)
    if (sample === undefined || family === undefined) fail(line, 'no sample')
    else if (!belongs(sample.name, family)) fail(line, `a sample outside its family ${family.name}`)
    else family.samples.push(sample)
  }
  for (const family of families) checkSamples(family)
  return families
}

function readSample(line: string): PrometheusSample | undefined {
  const head = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
  if (head === null) return undefined
  const [, name = '', list = '', number = ''] = head
  const labels: Record<string, string> = {}
  const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)/y
  while (label.lastIndex < list.length) {
    const found = label.exec(list)
    if (found === null || (found[1] as string) in labels) return undefined
    labels[found[1] as string] = found[2] as string
  }
  const value =
    number === '+Inf' ? Number.POSITIVE_INFINITY : number === '-Inf' ? Number.NEGATIVE_INFINITY : Number(number)
  if (Number.isNaN(value) && number !== 'NaN') return undefined
  return { name, labels, value }
}

function belongs(sample: string, { name, type }: PrometheusFamily): boolean {
  if (sample === name) return type !== 'histogram'
  if (type === 'histogram') return [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(sample)
  return type === 'summary' && [`${name}_sum`, `${name}_count`].includes(sample)
}

function checkSamples({ name, type, samples }: PrometheusFamily): void {
  const seen = new Set<string>()
  for (const sample of samples) {
    const key = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`
    if (seen.has(key)) throw new SyntaxError(`a series twice: ${key}`)
    seen.add(key)
    const isCount = type === 'counter' || (type === 'histogram' && !sample.name.endsWith('_sum'))
    if (isCount && !(sample.value >= 0)) throw new SyntaxError(`a count below zero: ${key}`)
    if (type === 'histogram' && sample.name === `${name}_bucket` && !('le' in sample.labels)) {
      throw new SyntaxError(`a bucket without le: ${key}`)
    }
  }
}
