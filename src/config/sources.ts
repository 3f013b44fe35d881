import { nearestName } from './nearest.ts'
import { type ConfigKey, clientSections, configKeys, isConfigKey } from './table.ts'

/** One value that some source gave, before it is checked. */
export interface Given {
  readonly key: string
  readonly raw: unknown
}

const segmentPattern = /^[A-Za-z0-9_-]+$/
const barred = new Set(['__proto__', 'constructor', 'prototype'])

/** Whether a dotted key is one that may stand in a configuration by its shape alone. */
export function isWellFormedKey(key: string): boolean {
  return key.split('.').every((segment) => segmentPattern.test(segment) && !barred.has(segment))
}

export function isClientOption(key: string): boolean {
  return clientSections.some((prefix) => key.startsWith(prefix) && key.length > prefix.length)
}

/**
 * A nested object, or one with dotted keys, or a mixture, as a list of dotted keys. Arrays are values. An empty branch
 * is nothing at all: `engine: {}` and `engine:` with its lines commented out are common in files.
 */
export function flatten(tree: Readonly<Record<string, unknown>>): Given[] {
  const out: Given[] = []
  const walk = (node: object, path: string): void => {
    for (const [name, value] of Object.entries(node)) {
      if (value === undefined) continue
      const key = path === '' ? name : `${path}.${name}`
      if (isBranch(value)) walk(value, key)
      else if (value === null && isPrefixOfKey(key)) continue
      else out.push({ key, raw: value })
    }
  }
  walk(tree, '')
  return out
}

function isBranch(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isPrefixOfKey(path: string): boolean {
  return !isConfigKey(path) && configKeys.some((key) => key.startsWith(`${path}.`))
}

/** `runtime.http.port` ↔ `RUNTIME_HTTP_PORT`. */
export function environmentName(key: string): string {
  return key.replace(/[.-]/g, '_').toUpperCase()
}

const keyByEnvironmentName = new Map<string, ConfigKey>(configKeys.map((key) => [environmentName(key), key]))
/** Kubernetes sets such names for every service of the namespace; a service called `broker` is no configuration. */
const serviceLink = /_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)$/

/**
 * What the environment says: variables that are the name of a key, and those of a client-option section, where `_`
 * stands for a dot. An empty variable counts as not given. Others are nobody's business, save that a near miss of a
 * key gets a warning.
 */
export function fromEnvironment(environment: Readonly<Record<string, string | undefined>>): {
  readonly given: Given[]
  readonly warnings: string[]
} {
  const given: Given[] = []
  const warnings: string[] = []
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || value === '' || !/^[A-Z][A-Z0-9_]*$/.test(name)) continue
    const known = keyByEnvironmentName.get(name)
    if (known !== undefined) {
      given.push({ key: known, raw: value })
      continue
    }
    if (serviceLink.test(name) || /^(tcp|udp|sctp):\/\//.test(value)) continue
    const section = clientSections.find((prefix) => name.startsWith(environmentName(prefix)))
    if (section !== undefined) {
      const key = section + name.slice(section.length).toLowerCase().replaceAll('_', '.')
      if (isWellFormedKey(key)) given.push({ key, raw: value })
      continue
    }
    const near = nearestName(name, [...keyByEnvironmentName.keys()], 2)
    if (near !== undefined) {
      warnings.push(`The environment variable ${name} is not a configuration key and was ignored; ${near} is one.`)
    }
  }
  return { given, warnings }
}

/** Variables that are configuration wherever the environment is read. */
export function configuredNames(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment)
    .filter(([name, value]) => keyByEnvironmentName.has(name) && value !== undefined && value !== '')
    .map(([name]) => name)
    .sort()
}

/** `key=value`, split at the first `=`; undefined where there is none. */
export function fromSetting(setting: string): Given | undefined {
  const at = setting.indexOf('=')
  return at <= 0 ? undefined : { key: setting.slice(0, at).trim(), raw: setting.slice(at + 1) }
}

const secretVariable =
  /(PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIALS?|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|LICENSE_?KEY)$/

/** Values of environment variables that are secrets by their name, whoever reads them: none may be shown anywhere. */
export function secretsOfEnvironment(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    value !== undefined && value.length >= 8 && secretVariable.test(name) ? [value] : [],
  )
}
