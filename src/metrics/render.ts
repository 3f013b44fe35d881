/** Prometheus text exposition format 0.0.4. */
import type { HistogramSample, Sample } from './table-types.ts'

export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  /** Lines of samples, each with its line end. */
  readonly text: string
}

export function renderSamples(name: string, labels: readonly string[], samples: Iterable<Sample>): string {
  let text = ''
  for (const sample of samples) text += `${name}${renderLabels(labels, sample.labels)} ${renderNumber(sample.value)}\n`
  return text
}

export function renderHistograms(
  name: string,
  labels: readonly string[],
  bounds: readonly number[],
  samples: Iterable<HistogramSample>,
): string {
  let text = ''
  for (const { labels: own, value } of samples) {
    value.cumulative.forEach((count, i) => {
      const le = renderNumber(bounds[i] ?? Number.POSITIVE_INFINITY)
      text += `${name}_bucket${renderLabels([...labels, 'le'], { ...own, le })} ${count}\n`
    })
    const shown = renderLabels(labels, own)
    text += `${name}_sum${shown} ${renderNumber(value.sum)}\n${name}_count${shown} ${value.cumulative.at(-1) ?? 0}\n`
  }
  return text
}

function renderLabels(names: readonly string[], labels: Readonly<Record<string, string>>): string {
  if (names.length === 0) return ''
  return `{${names.map((name) => `${name}="${escapeLabel(labels[name] ?? '')}"`).join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"')
}

export function renderNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}

/** Families by name, each with HELP before TYPE. A family without samples is left out. */
export function renderFamilies(families: Iterable<Family>): string {
  const shown = [...families].filter((family) => family.text !== '')
  shown.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  return shown
    .map(({ name, help, type, text }) => `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${text}`)
    .join('')
}

function escapeHelp(help: string): string {
  return help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
}

const sampleLine =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{ *(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*" *(?:, *)?)*\})? +(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?Inf|NaN)(?: -?\d+)?$/

/** What the format knows. A scrape with another type, as OpenMetrics has more, is refused as a whole. */
const familyTypes: ReadonlySet<string> = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])

/**
 * Families of a text that another registry rendered. Undefined where it is no such text: what cannot be read would
 * spoil the whole scrape.
 */
export function parseFamilies(text: string): Family[] | undefined {
  const families = new Map<string, { type: string; help: string; text: string }>()
  const family = (name: string): { type: string; help: string; text: string } => {
    const known = families.get(name) ?? { type: 'untyped', help: '', text: '' }
    families.set(name, known)
    return known
  }
  for (const line of text.split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) ?(.*)$/.exec(line)
    if (comment?.[1] === 'HELP') family(comment[2] as string).help = unescapeHelp(comment[3] as string)
    else if (comment?.[1] === 'TYPE') {
      const type = (comment[3] as string).trim()
      family(comment[2] as string).type = familyTypes.has(type) ? type : 'untyped'
    } else if (line === '' || line.startsWith('#')) continue
    else {
      const name = sampleLine.exec(line)?.[1]
      if (name === undefined) return undefined
      const owner = families.has(name) ? name : name.replace(/_(bucket|sum|count)$/, '')
      family(families.has(owner) ? owner : name).text += `${line}\n`
    }
  }
  return [...families].map(([name, rest]) => ({ name, ...rest }))
}

function unescapeHelp(help: string): string {
  return help.replace(/\\(n|\\)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : '\\'))
}
