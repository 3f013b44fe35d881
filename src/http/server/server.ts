import type { IncomingMessage, ServerResponse } from 'node:http'
import { isBlockedPort } from '../blocked-ports.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { maskText } from '../../config/mask.ts'
import type { Verdict } from '../../view/diagnosis/finding.ts'
import type { EngineCommands, EngineView } from '../../view/view.ts'
import { messageOf } from '../../base/errors.ts'
import { crossOriginOf } from './cross-origin.ts'
import { createDispatcher, type DispatcherOptions, internalError, isRegistered } from './dispatch.ts'
import { hostGuard, tokenGuard } from './guard.ts'
import type { DataAccess } from '../data-seam.ts'
import type { HaView } from '../ha-seam.ts'
import type { HealthRegistry } from '../health.ts'
import type { HttpConfig, HttpLog } from '../http-config.ts'
import type { LicenseSource } from '../license-seam.ts'
import { openApi } from '../routes/openapi.ts'
import type { UnparsedRequest } from './parser-errors.ts'
import type { Reply } from '../routes/reply.ts'
import { type Pages, pagesOf } from './pages.ts'
import { HttpListener, send } from './listener.ts'
import type { Gate, Route, RouteServices } from '../routes/route.ts'
import { routes as allRoutes } from '../routes/routes.ts'
import { FlowRates, rateEveryMs } from '../../view/flow-rates.ts'
import { judgedByView } from '../why-seam.ts'

/** What `/metrics` answers with, and what is told of each request. */
export interface HttpMetrics {
  scrape(): Promise<string>
  observeRequest(method: string, route: string, status: number, seconds: number): void
}

/** Made once: an abort without a reason makes an error with its stack, for every request. */
const clientGone = new Error('the client has gone')

export interface HttpServerOptions {
  readonly view: EngineView
  readonly commands: EngineCommands
  readonly config: HttpConfig
  readonly health: HealthRegistry
  readonly license: LicenseSource
  readonly metrics: HttpMetrics | null
  /** The merged configuration as a nested map, masked. */
  readonly configView: () => Readonly<Record<string, unknown>>
  /** Where each value of it comes from, by whole dotted key. Default: not told. */
  readonly configSources?: () => Readonly<Record<string, string>>
  readonly ha?: HaView | null
  /** Why nothing moves. Default: judged by the view alone, whenever it is asked. */
  readonly why?: () => Verdict
  /** Rows and dead letters. Default: none. */
  readonly data?: DataAccess | null
  /** Where the console's files are. Default: where they are built to. */
  readonly consoleFolder?: string
  /** Endpoints of the same kind beside those of the interface. */
  readonly extraRoutes?: readonly Route[]
  readonly version?: string
  readonly clock?: Clock
  /** Epoch milliseconds of the process's start; default: now. */
  readonly startedAtMs?: number
  readonly log?: HttpLog
  /** Takes secrets out of what is logged. Default: by the look of it. */
  readonly maskText?: (text: string) => string
}

export interface HttpServer {
  /** Binds and serves. @throws EngineError PORT_TAKEN, CONFIG_INVALID */
  listen(): Promise<{ readonly url: string; readonly host: string; readonly port: number }>
  /** Lets answers under way finish, for a second at most, then closes every connection. */
  close(): Promise<void>
  /** Answers one request: for mounting the interface in a server of the application's own. Never rejects. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** The endpoints registered in this instance. */
  readonly routes: readonly Route[]
}

/**
 * The HTTP interface over the engine's snapshots. It starts before the engine and ends after it, so that probes and
 * refusals are true from the first moment to the last.
 *
 * @example
 * const http = createHttpServer({ view, commands, config, health, license: noKeyLicense(), metrics, configView })
 * const { url } = await http.listen()
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config } = options
  const log: HttpLog = options.log ?? (() => undefined)
  const clock = options.clock ?? systemClock
  const mask = options.maskText ?? maskText
  const gates = gatesOf(options)
  const known = [...allRoutes, ...(options.extraRoutes ?? [])]
  const registered = known.filter((route) => isRegistered(route, gates))
  const pages = pagesFor(options)
  const rates = new FlowRates(options.view)
  const sampling = setInterval(() => rates.sample(clock.monotonic(), clock.now()), rateEveryMs)
  sampling.unref()
  const dispatch = createDispatcher({
    routes: known,
    services: servicesOf(options, registered, { clock, mask, rates, pages, rowsShown: gates.stores }),
    gates,
    maxUrlLength: config.maxUrlLength,
    ...guardsOf(config),
    pages: pages.answer,
    failed: (path, thrown) => log('error', `${path} failed: ${mask(messageOf(thrown))}`),
  })

  const crossOrigin = crossOriginOf(config.consolePods)
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedAt = clock.monotonic()
    const { method = 'GET', headers } = request
    const permission = crossOrigin.permission(method, headers)
    const { route, reply } = permission
      ? { route: 'unmatched', reply: permission }
      : await dispatch({
          method,
          target: request.url ?? '/',
          headers,
          from: request.socket.remoteAddress,
          signal: untilGone(response),
        })
    send(response, crossOrigin.marked(reply, method, headers))
    options.metrics?.observeRequest(method, route, reply.status, (clock.monotonic() - startedAt) / 1000)
  }

  const judge = async (request: UnparsedRequest): Promise<Reply> => {
    const { route, reply } = await dispatch({ ...request, signal: AbortSignal.abort(clientGone) })
    options.metrics?.observeRequest(request.method, route, reply.status, 0)
    return reply
  }
  // Nobody waits for what these two promise, and a rejection that nobody handles ends the process.
  const unforeseen = (thrown: unknown): Reply => {
    log('error', `a request failed: ${mask(messageOf(thrown))}`)
    return internalError
  }
  const handler: HttpServer['handler'] = (request, response) =>
    serve(request, response).catch((thrown) => send(response, unforeseen(thrown)))
  const own = new HttpListener(config, handler, (request) => judge(request).catch(unforeseen), log)
  return {
    handler,
    routes: registered,
    listen: async () => {
      const address = await own.listen()
      const warning = exposureWarning(config, registered)
      if (warning !== undefined) log('warn', warning)
      if (isBlockedPort(config.port)) log('warn', blockedWarning(config.port))
      return address
    },
    close: () => {
      clearInterval(sampling)
      return own.close()
    },
  }
}

function gatesOf({ config, ha = null, data = null }: HttpServerOptions): Readonly<Record<Gate, boolean>> {
  return {
    always: true,
    metrics: config.metricsEnabled,
    config: config.configEndpointEnabled,
    ha: config.haEnabled && ha !== null,
    debug: config.debugEnabled,
    stores: config.storesEndpointEnabled && data !== null,
    deadLetters: config.deadLettersEndpointEnabled && data !== null,
  }
}

/** Aborts once nobody waits for the answer any more. */
function untilGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) gone.abort(clientGone)
  })
  return gone.signal
}

/** Who may ask for what: the console's files hold nothing of the application, and are open to all hosts that are allowed. */
function guardsOf({ allowedHosts, token }: HttpConfig): Pick<DispatcherOptions, 'guards' | 'pageGuard'> {
  const byHost = hostGuard(allowedHosts)
  return { guards: [byHost, tokenGuard(token)], pageGuard: byHost }
}

function pagesFor({ config, consoleFolder }: HttpServerOptions): Pages {
  const { consoleEnabled: enabled, consoleReadOnly: readOnly, consolePods: pods, token } = config
  const folder = consoleFolder === undefined ? {} : { folder: consoleFolder }
  return pagesOf({ enabled, readOnly, pods, tokenNeeded: token !== null, ...folder })
}

interface Own {
  readonly clock: Clock
  readonly mask: (text: string) => string
  readonly rates: FlowRates
  readonly pages: Pages
  readonly rowsShown: boolean
}

function servicesOf(
  options: HttpServerOptions,
  registered: readonly Route[],
  { clock, mask, rates, pages, rowsShown }: Own,
): RouteServices {
  const { view, commands, health, license, configView, config } = options
  const startedAtMs = options.startedAtMs ?? clock.now()
  // Uptime goes by the monotonic clock: a wall clock that is set must not bend it.
  const origin = clock.monotonic() - (clock.now() - startedAtMs)
  const document = openApi(registered, options.version ?? '0', config.token !== null)
  const paths = [...registered.map((route) => route.path), ...pages.endpoints]
  return {
    view,
    commands,
    health,
    license,
    configView,
    configSources: options.configSources ?? (() => ({})),
    clock,
    startedAtMs,
    metrics: config.metricsEnabled ? options.metrics : null,
    ha: options.ha ?? null,
    why: options.why ?? judgedByView(view, license, clock),
    flow: (stages, withHistory) => rates.report(clock.now(), stages, withHistory),
    data: options.data ?? null,
    rowsShown,
    uptimeMs: () => clock.monotonic() - origin,
    mask,
    endpoints: () => paths,
    openApi: () => document,
  }
}

function blockedWarning(port: number): string {
  return (
    `browsers refuse to ask port ${port}, and so does the command millrace: the console cannot be opened there; ` +
    'set runtime.http.port to another, such as 8080'
  )
}

/** Names what a stranger could read or do, where the interface is open to every network the machine is in. */
function exposureWarning(config: HttpConfig, registered: readonly Route[]): string | undefined {
  if (!['0.0.0.0', '::', ''].includes(config.host) || config.token !== null) return undefined
  const sensitive = registered.filter((route) => route.sensitive).map((route) => route.path)
  return (
    `the HTTP interface listens on all network interfaces without a token; only /health/live and /health/ready are fit ` +
    `for public networks, keep these inside: ${sensitive.join(', ')} (runtime.http.host, runtime.http.auth.token)`
  )
}
