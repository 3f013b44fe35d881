/** Probes, and what is known without the engine. */
import { stringify } from 'yaml'
import { answerOf, answerText } from '../../view/diagnosis/answer.ts'
import { renderInfo } from './info.ts'
import { preferredType } from './negotiate.ts'
import { madeOnce } from './documents.ts'
import { contentTypes, error, json, jsonDocument, type Reply, text } from './reply.ts'
import { type Route, routeDefaults } from './route.ts'
import type { Answer } from './schemas.ts'

export const probeRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/health/live',
    failures: [503],
    schema: 'HealthReport',
    summary: 'Liveness probe',
    doc: 'Whether the process can go on. DOWN only where a restart can help: the engine FAILED for such a cause, its thread has been silent for 30 seconds in which the process was let run, or an indicator of the application says so. UP while starting, restoring and shutting down.',
    handle: ({ health }) => probeReply(health.report('live')),
  },
  {
    ...routeDefaults,
    path: '/health/ready',
    failures: [503],
    schema: 'HealthReport',
    summary: 'Readiness probe',
    doc: 'Whether the process does its work: every indicator is UP. DOWN while starting, restoring, restarting and shutting down; paused by an operator it stays UP.',
    handle: ({ health }) => probeReply(health.report('ready')),
  },
  {
    ...routeDefaults,
    path: '/health/active',
    failures: [503],
    schema: 'HealthReport',
    summary: 'Probe that only the active pod answers with UP',
    doc: 'Whether this process is the one that processes, paused or not: for a load balancer that follows the active pod of a hot-standby group. A standby answers DOWN, however ready it is, and so does a pod that hands over or is cut off. Without high availability it is UP while the engine runs.',
    handle: ({ health }) => probeReply(health.report('active')),
  },
]

function probeReply(report: Answer<'HealthReport'>): Reply {
  return json(report.status === 'UP' ? 200 : 503, report)
}

/** YAML 1.1, which many programs still read, takes `off` and `yes` for booleans: such words are quoted. */
const yamlForAll = { compat: 'yaml-1.1', lineWidth: 0 } as const

const configDocument = madeOnce((config: object, format: 'yaml' | 'json') =>
  format === 'json' ? JSON.stringify(config) : stringify(config, yamlForAll),
)
const openApiDocument = madeOnce((description: object, _format: 'json') => JSON.stringify(description))

export const aboutRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/metrics',
    gate: 'metrics',
    sensitive: false,
    failures: [503],
    schema: null,
    formats: 'metrics',
    summary: 'Metrics in the Prometheus text format',
    doc: 'Every metric of `docs/metrics.md`, in text exposition format 0.0.4. Made at most once a second. 503 where `runtime.metrics.enabled` is false.',
    handle: async ({ metrics }) =>
      metrics === null
        ? error(503, 'metrics are not enabled; set runtime.metrics.enabled to true')
        : text(await metrics.scrape(), contentTypes.metrics),
  },
  {
    ...routeDefaults,
    path: '/info',
    sensitive: true,
    schema: 'Info',
    summary: 'Application, platform, state and registered endpoints',
    doc: 'Always answered once the server is up. `lanes` is the count in force. The sections `watermark`, `offsets`, `consumer` and `topology` appear once the engine has them.',
    handle: (services) => json(200, renderInfo(services)),
  },
  {
    ...routeDefaults,
    path: '/why',
    sensitive: true,
    schema: 'Why',
    formats: 'json or text',
    summary: 'Why nothing moves: cause, place, since when, what to do',
    doc: 'One sentence for what holds the application up, with the findings behind it, causes before effects, and how each stage spends its time. Answered in every state, from what is known already: no broker is asked and no lane is waited for. `docs/guide/standstills.md` explains each code.',
    handle: ({ why }, { accept }) => {
      const answer = answerOf(why())
      const type = preferredType(accept, ['application/json', 'text/plain'])
      const reply = type === 'text/plain' ? text(answerText(answer)) : json<Answer<'Why'>>(200, answer)
      return { ...reply, headers: { Vary: 'Accept' } }
    },
  },
  {
    ...routeDefaults,
    path: '/license',
    sensitive: true,
    schema: 'License',
    summary: 'License state',
    doc: 'State of the license; `NO_KEY` where no key is configured.',
    handle: ({ license }) => json<Answer<'License'>>(200, license.state()),
  },
  {
    ...routeDefaults,
    path: '/config',
    gate: 'config',
    sensitive: true,
    schema: 'Configuration',
    formats: 'yaml or json',
    summary: 'Merged configuration, secrets masked',
    doc: 'The configuration in force as a nested map; every secret is `******`. YAML unless JSON is asked for.',
    handle: ({ configView }, { accept }) => {
      const offered = ['text/yaml', 'application/yaml', 'application/x-yaml', 'text/html', 'application/json'] as const
      const asJson = preferredType(accept, offered) === 'application/json'
      const config = configView()
      const reply = asJson
        ? jsonDocument(configDocument(config, 'json'))
        : text(configDocument(config, 'yaml'), contentTypes.yaml)
      return { ...reply, headers: { Vary: 'Accept' } }
    },
  },
  {
    ...routeDefaults,
    path: '/config/sources',
    gate: 'config',
    sensitive: true,
    schema: 'ConfigurationSources',
    summary: 'Where each value comes from',
    doc: 'Of every key of `/config`, by its whole dotted name, which source gave the value in force.',
    handle: ({ configSources }) => json<Answer<'ConfigurationSources'>>(200, { sources: configSources() }),
  },
]

export const descriptionRoutes: readonly Route[] = [
  {
    ...routeDefaults,
    path: '/openapi.json',
    schema: 'OpenApi',
    summary: 'This interface as OpenAPI 3.1',
    doc: 'Describes the endpoints registered in this instance.',
    handle: ({ openApi }) => jsonDocument(openApiDocument(openApi(), 'json')),
  },
]
