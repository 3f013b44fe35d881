import { Counter, collectDefaultMetrics, Histogram, type MetricValueWithName, Registry } from '@prometheus-io/client'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Verdict } from '../view/diagnosis/finding.ts'
import type { EngineView } from '../view/view.ts'
import { messageOf } from '../base/errors.ts'
import type { HaMetrics } from '../ha/contract.ts'
import { type Family, parseFamilies, renderFamilies, renderHistograms, renderSamples } from './render.ts'
import { histogramTable, metricTable, observedTable } from './table.ts'
import type { HaFigures, HealthFigures, LicenseFigures, Moment } from './table-types.ts'
import { TransitionTracker } from './trackers.ts'

export interface MetricsOptions {
  readonly view: EngineView
  readonly health: HealthFigures
  readonly license: { state(): LicenseFigures }
  /** The coordinator; where one only shows a status there are no counters. */
  readonly ha?: { status(): HaFigures | null; readonly metrics?: (() => HaMetrics) | undefined } | null
  readonly haMode: string
  /** What is found to hold the application up. */
  readonly why?: () => Verdict
  readonly version: string
  readonly clock?: Clock
  readonly log?: (level: 'warn', message: string) => void
}

export interface Metrics {
  /** The whole text, made at most once a second. */
  scrape(): Promise<string>
  observeRequest(method: string, route: string, status: number, seconds: number): void
  /**
   * Adds what another registry renders to every scrape. A family of a name that is taken is left out, as is a text
   * that cannot be read or fails to come; both are logged once.
   *
   * @returns a function that takes it out again.
   * @example metrics.append(() => register.metrics())
   */
  append(source: () => string | Promise<string>): () => void
  /** What every row is made of, as of now. */
  moment(): Moment
  close(): void
}

const cacheMs = 1000
/** Often enough to see every transition: the history is longer than what fits in between. */
const lookEveryMs = 250
const knownMethods = new Set(['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH'])

/** The client's names that Prometheus' own linter objects to: gauges that end like counters, types within names. */
const misnamed = /^nodejs_(active_\w+_total|eventloop_utilization_(histogram|summary))$/

let processRegistry: Registry | undefined

/** `process_*` and `nodejs_*` tell of the process, not of one engine in it: one registry serves all. */
function processMetrics(): Registry {
  if (processRegistry === undefined) {
    processRegistry = new Registry()
    collectDefaultMetrics({ register: processRegistry })
  }
  return processRegistry
}

/** Rendered here rather than by the client, which spells what is not a number in a way that the format does not know. */
async function familiesOf(registry: Registry): Promise<Family[]> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map(({ name, help, type, values }) => {
    // The client has no mean of what it has not measured yet.
    const known = (values as Array<Partial<MetricValueWithName<string>>>).filter(({ value }) => !Number.isNaN(value))
    const lines = known.map(({ metricName = name, labels = {}, value = 0 }) => {
      const entries = Object.entries(labels).map(([label, each]) => [label, String(each)] as const)
      const names = entries.map(([label]) => label)
      return renderSamples(metricName, names, [{ labels: Object.fromEntries(entries), value }])
    })
    return { name, help, type, text: lines.join('') }
  })
}

export function createMetrics(options: MetricsOptions): Metrics {
  const { view } = options
  const clock = options.clock ?? systemClock
  const observed = new Observed()
  const transitions = new TransitionTracker()
  const appended = new Appended(options.log ?? (() => undefined))
  const look = (): void => transitions.look(view.state())
  const timer = setInterval(look, lookEveryMs)
  timer.unref()

  const render = async (): Promise<string> => {
    look()
    const moment = takeMoment(options, clock, transitions)
    const own = metricTable.map(({ name, type, help, labels, samples }) => ({
      name,
      type,
      help,
      text: renderSamples(name, labels, samples(moment)),
    }))
    const { counters, topology } = moment
    const distributions = histogramTable.map(({ name, help, labels, bounds, samples }) => ({
      name,
      type: 'histogram',
      help,
      text: counters === null ? '' : renderHistograms(name, labels, bounds, samples(counters, topology)),
    }))
    const families = [
      ...own,
      ...distributions,
      ...(await familiesOf(observed.registry)),
      ...(await familiesOf(processMetrics())).filter(({ name }) => !misnamed.test(name)),
    ]
    return renderFamilies([...families, ...(await appended.families(new Set(families.map((family) => family.name))))])
  }

  let cached: { readonly at: number; readonly text: Promise<string> } | undefined
  return {
    scrape: () => {
      const now = clock.monotonic()
      if (cached === undefined || now - cached.at >= cacheMs) {
        const text = render()
        cached = { at: now, text }
        text.catch(() => {
          cached = undefined
        })
      }
      return cached.text
    },
    observeRequest: (method, route, status, seconds) => observed.request(method, route, status, seconds),
    append: (source) => appended.add(source),
    moment: () => {
      look()
      return takeMoment(options, clock, transitions)
    },
    close: () => clearInterval(timer),
  }
}

function takeMoment(options: MetricsOptions, clock: Clock, transitions: TransitionTracker): Moment {
  const { view, health, license, ha, haMode, version } = options
  const verdict = options.why?.()
  return {
    nowMs: clock.now(),
    view,
    topology: view.topology(),
    state: view.state(),
    watermarks: view.watermarks(),
    offsets: view.offsets(),
    consumer: view.consumer(),
    barriers: view.barriers(),
    counters: view.counters(),
    health,
    license: license.state(),
    ha: ha?.status() ?? null,
    haCounts: ha?.metrics?.() ?? null,
    haMode,
    version,
    findings: verdict?.findings ?? [],
    stageTimes: verdict?.times ?? [],
    transitions: transitions.samples(),
  }
}

/** Metrics that are counted as things happen. */
class Observed {
  readonly registry = new Registry()
  readonly #requests: Counter<'method' | 'route' | 'status'>
  readonly #requestDuration: Histogram<'route'>

  constructor() {
    const common = <T extends string>(name: keyof typeof observedTable, labelNames: readonly T[]) => ({
      name,
      help: observedTable[name].help,
      labelNames,
      registers: [this.registry],
    })
    const { engine_http_request_duration_seconds: timed } = observedTable
    const buckets = [...timed.buckets]
    this.#requests = new Counter(common('engine_http_requests_total', ['method', 'route', 'status']))
    this.#requestDuration = new Histogram({ ...common('engine_http_request_duration_seconds', ['route']), buckets })
  }

  request(method: string, route: string, status: number, seconds: number): void {
    this.#requests.inc({ method: knownMethods.has(method) ? method : 'other', route, status: String(status) })
    this.#requestDuration.observe({ route }, seconds)
  }
}

/** Registries of the application's own. */
class Appended {
  readonly #sources = new Set<() => string | Promise<string>>()
  readonly #complained = new Set<string>()
  readonly #log: (level: 'warn', message: string) => void

  constructor(log: (level: 'warn', message: string) => void) {
    this.#log = log
  }

  add(source: () => string | Promise<string>): () => void {
    this.#sources.add(source)
    return () => this.#sources.delete(source)
  }

  async families(taken: Set<string>): Promise<Family[]> {
    const accepted: Family[] = []
    for (const source of this.#sources) {
      for (const family of await this.#read(source)) {
        if (taken.has(family.name)) {
          this.#complain(`the appended metric ${family.name} is left out: its name is taken`)
          continue
        }
        taken.add(family.name)
        accepted.push(family)
      }
    }
    return accepted
  }

  async #read(source: () => string | Promise<string>): Promise<readonly Family[]> {
    try {
      const families = parseFamilies(await source())
      if (families === undefined) this.#complain('an appended registry is left out: it is no Prometheus text format')
      return families ?? []
    } catch (error) {
      this.#complain(`an appended registry is left out: ${messageOf(error)}`)
      return []
    }
  }

  #complain(message: string): void {
    if (this.#complained.has(message) || this.#complained.size > 100) return
    this.#complained.add(message)
    this.#log('warn', message)
  }
}
