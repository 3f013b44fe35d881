/**
 * Judges a request and answers it. The order is fixed: 404 (unknown, turned off), 405, 403, 400, 503, 409. Token and
 * host name are looked at before all of it, so that a stranger learns nothing; the probes are exempt.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { startedStates } from '../../view/lifecycle.ts'
import { isCrossSite } from './guard.ts'
import { isProbe } from '../routes/openapi.ts'
import { parseParameters } from '../routes/parameters.ts'
import { error, notInitialized, type Reply } from '../routes/reply.ts'
import type { Gate, Route, RouteServices } from '../routes/route.ts'
import type { Pages } from './pages.ts'

export interface HttpRequest {
  readonly method: string
  /** As sent: path and query, or an absolute address. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  /** Address of the client. */
  readonly from?: string | undefined
  readonly signal: AbortSignal
}

export interface Answer {
  /** Path of the endpoint, or `unmatched`: for the metrics, so never what was sent. */
  readonly route: string
  readonly reply: Reply
}

export interface DispatcherOptions {
  readonly routes: readonly Route[]
  readonly services: RouteServices
  readonly gates: Readonly<Record<Gate, boolean>>
  readonly maxUrlLength: number
  readonly guards: ReadonlyArray<(headers: IncomingHttpHeaders) => Reply | undefined>
  /** The console's files, which need no token. */
  readonly pages?: Pages['answer']
  /** Of the guards, those that hold for these files as well. */
  readonly pageGuard?: (headers: IncomingHttpHeaders) => Reply | undefined
  /** Told what an endpoint threw; the client is told nothing of it. */
  readonly failed: (path: string, thrown: unknown) => void
}

const notFound = error(404, 'unknown path; GET /info lists the endpoints of this instance')
/** Where something failed that no client can help. */
export const internalError = error(500, 'internal error; the log of this process tells more')
const crossSite = error(403, 'cross-site requests are refused; send it from this origin, or without the Origin header')

/** An endpoint that is off is unknown, save `/metrics`, whose own handler says that it is off. */
export function isRegistered(route: Route, gates: Readonly<Record<Gate, boolean>>): boolean {
  return gates[route.gate]
}

export function createDispatcher(options: DispatcherOptions): (request: HttpRequest) => Promise<Answer> {
  const { services, gates, guards, maxUrlLength } = options
  const find = finder(options.routes)
  const hasStarted = startedLatch(services)

  const judge = (route: Route | undefined, request: HttpRequest): Reply | undefined => {
    if (route === undefined || !(gates[route.gate] || route.gate === 'metrics')) return notFound
    if (request.method !== route.method) {
      return error(405, `method not allowed; ${route.path} accepts ${route.method}`, { Allow: route.method })
    }
    return route.method === 'POST' && isCrossSite(request.headers) ? crossSite : undefined
  }

  const answer = async ({ route, inPath }: Found, query: string, request: HttpRequest): Promise<Reply> => {
    const parsed = parseParameters(route.parameters, query, inPath)
    if (!parsed.ok) return error(400, parsed.error)
    if (route.needs !== 'nothing' && services.view.topology() === null) return notInitialized(services.view)
    if (route.needs === 'started' && !hasStarted()) {
      return error(503, `application has not started yet (state is ${services.view.state().current}); retry later`)
    }
    const { headers, signal, from } = request
    return route.handle(services, { accept: headers.accept, parameters: parsed.values, from, signal })
  }

  return async (request) => {
    if (request.target.length > maxUrlLength) {
      return { route: 'unmatched', reply: error(414, `request target is longer than ${maxUrlLength} characters`) }
    }
    const { path, query } = splitTarget(request.target)
    let label = 'console'
    try {
      const page = options.pages?.(request.method, path, request.headers)
      if (page !== undefined) return { route: label, reply: options.pageGuard?.(request.headers) ?? page }
      const found = find(path)
      const route = found?.route
      label = route?.path ?? 'unmatched'
      const guard = isProbe(path) ? undefined : firstRefusal(guards, request.headers)
      const refusal = guard ?? judge(route, request)
      if (refusal !== undefined || found === undefined || route === undefined)
        return { route: label, reply: refusal ?? notFound }
      return { route: label, reply: await answer(found, query, request) }
    } catch (thrown) {
      options.failed(label, thrown)
      return { route: label, reply: internalError }
    }
  }
}

interface Found {
  readonly route: Route
  /** What stands where the path has a name in braces. */
  readonly inPath?: string
}

/** Only the last part of a path may be a name of the application's; it is the one thing that is decoded. */
function finder(routes: readonly Route[]): (path: string) => Found | undefined {
  const named = routes.filter(({ path }) => path.endsWith('}'))
  const byPath = new Map(routes.filter((route) => !named.includes(route)).map((route) => [route.path, { route }]))
  const byFolder = new Map(named.map((route) => [route.path.slice(0, route.path.lastIndexOf('/') + 1), route]))
  return (path) => {
    const exact = byPath.get(path)
    if (exact !== undefined) return exact
    const at = path.lastIndexOf('/') + 1
    const route = byFolder.get(path.slice(0, at))
    const inPath = route === undefined || at === path.length ? undefined : decoded(path.slice(at))
    return route === undefined || inPath === undefined ? undefined : { route, inPath }
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function firstRefusal(guards: DispatcherOptions['guards'], headers: IncomingHttpHeaders): Reply | undefined {
  for (const guard of guards) {
    const refusal = guard(headers)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** Nothing is decoded or made canonical: a path is an endpoint's or it is unknown. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.replace(/^https?:\/\/[^/?#]*/i, '')
  const mark = local.indexOf('?')
  return mark < 0 ? { path: local, query: '' } : { path: local.slice(0, mark), query: local.slice(mark + 1) }
}

/** True from the first time that the start was seen complete; the history is bounded and forgets. */
function startedLatch({ view }: RouteServices): () => boolean {
  let started = false
  return () => {
    if (started) return true
    const { current, history } = view.state()
    started =
      startedStates.has(current) ||
      history.some(({ state, from }) => startedStates.has(state) || startedStates.has(from))
    return started
  }
}
