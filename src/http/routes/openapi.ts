import { isInPath, type Parameter } from './parameters.ts'
import { contentTypes } from './reply.ts'
import type { Route } from './route.ts'
import { type Schema, schemas } from './schemas.ts'

/** Statuses that any endpoint may give before it is asked: wrong token, method, target or load. */
const everywhere: Readonly<Record<number, string>> = {
  400: 'Malformed request',
  401: 'Bearer token missing or wrong',
  403: 'Cross-site request refused',
  404: 'Unknown path, or turned off',
  405: 'Wrong method; `Allow` names the right one',
  409: 'Refused in the present state',
  413: 'Request body too large',
  414: 'Request target too long',
  421: 'Not for this process: another has what is asked for, at `address` where it is known',
  431: 'Request headers too large',
  503: 'Not available yet, or DOWN',
}
const general = [400, 401, 404, 405, 413, 414, 431]
const schemaReference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** OpenAPI 3.1 of the given routes. */
export function openApi(registered: readonly Route[], version: string, withToken: boolean): object {
  const paths = registered.map((route) => [route.path, { [route.method.toLowerCase()]: operation(route) }])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version,
      description: 'Operational interface of a running stream-processing application.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    ...(withToken ? { security: [{ bearer: [] }] } : {}),
    paths: Object.fromEntries(paths),
    components: {
      schemas,
      ...(withToken ? { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } } : {}),
    },
  }
}

function operation(route: Route): object {
  const statuses = [...new Set([...general, ...route.failures])].sort((a, b) => a - b)
  return {
    operationId: operationId(route),
    summary: route.summary,
    description: route.doc,
    ...(isProbe(route.path) ? { security: [] } : {}),
    ...(route.parameters.length === 0 ? {} : { parameters: route.parameters.map(parameter) }),
    responses: {
      [String(route.success)]: { description: route.summary, content: successContent(route) },
      ...Object.fromEntries(statuses.map((status) => [String(status), failure(route, status)])),
    },
  }
}

export function isProbe(path: string): boolean {
  return path === '/health/live' || path === '/health/ready' || path === '/health/active'
}

function operationId(route: Route): string {
  const words = route.path.split(/[/.{}]/).filter((word) => word !== '')
  return [route.method.toLowerCase(), ...words].join('-')
}

function parameter(known: Parameter): object {
  return {
    name: known.name,
    in: isInPath(known) ? 'path' : 'query',
    required: known.type === 'name' || isInPath(known),
    description: known.doc,
    schema: valueSchema(known),
  }
}

function valueSchema(known: Parameter): Schema {
  switch (known.type) {
    case 'integer':
      return { type: 'integer', minimum: known.min, maximum: known.max, default: known.default }
    case 'enum':
      return { type: 'string', enum: known.values, default: known.default }
    case 'boolean':
      return { type: 'boolean', default: known.default }
    case 'text':
      return { type: 'string', minLength: 1, maxLength: known.maxLength }
    case 'name':
      return { type: 'string', pattern: `^${known.pattern}$` }
  }
}

function successContent(route: Route): object {
  const schema = route.schema === null ? { type: 'string' } : schemaReference(route.schema)
  switch (route.formats) {
    case 'json':
      return { [contentTypes.json]: { schema } }
    case 'json or text':
      return { [contentTypes.json]: { schema }, [contentTypes.text]: { schema: { type: 'string' } } }
    case 'text or json':
      return { [contentTypes.text]: { schema: { type: 'string' } }, [contentTypes.json]: { schema } }
    case 'yaml or json':
      return { [contentTypes.yaml]: { schema }, [contentTypes.json]: { schema } }
    case 'metrics':
      return { [contentTypes.metrics]: { schema } }
  }
}

function failure(route: Route, status: number): object {
  const body = isProbe(route.path) && status === 503 ? 'HealthReport' : 'Error'
  const allow = { Allow: { description: 'The accepted method', schema: { type: 'string' } } }
  return {
    description: everywhere[status] ?? 'Refused',
    ...(status === 405 ? { headers: allow } : {}),
    content: { [contentTypes.json]: { schema: schemaReference(body) } },
  }
}
