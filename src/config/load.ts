import { readFileSync } from 'node:fs'
import { EngineError, messageOf } from '../base/errors.ts'
import { logComponents } from '../base/logger.ts'
import { refuseTooManyFiles } from '../base/named-file.ts'
import { Config, type ConfigSource } from './config.ts'
import { isSecretKey, mask, maskText } from './mask.ts'
import { nearestName } from './nearest.ts'
import { type PlainValue, parseValue } from './parse-value.ts'
import { crossRules } from './rules.ts'
import {
  flatten,
  fromEnvironment,
  fromSetting,
  type Given,
  isClientOption,
  isWellFormedKey,
  secretsOfEnvironment,
} from './sources.ts'
import { type ConfigKey, configKeys, isConfigKey, rowOf } from './table.ts'
import { readYaml, Unquoted } from './yaml.ts'

type ApplicationConfig = Readonly<Record<string, unknown>>

export interface ConfigSources {
  /** By dotted key, nested, or both; of several the later ones stand over the earlier. */
  readonly application?: ApplicationConfig | readonly (ApplicationConfig | undefined)[]
  /** Path of a YAML file. */
  readonly file?: string
  /** Usually `process.env`; nothing is read from there by itself. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** `key=value`, each. */
  readonly set?: readonly string[]
}

/** What came together from all sources, before it is a `Config`. */
const kafkasOwn = /^broker\.(sasl|ssl|oauth|security)(\.|$)/

class Gathering {
  readonly values: Record<string, PlainValue> = {}
  readonly extra: Record<string, unknown> = {}
  readonly sources: Record<string, ConfigSource> = {}
  readonly secrets = new Set<string>()
  readonly warnings: string[] = []
  readonly faults: string[] = []

  fault(key: string, source: string, sentence: string): void {
    this.faults.push(maskText(`${key} (${source}): ${sentence}`))
  }

  add(given: Given, source: ConfigSource, origin: string = source): void {
    const { key, raw } = given
    if (isConfigKey(key)) this.#addKnown(key, raw, source, origin)
    else if (isClientOption(key) && isWellFormedKey(key)) this.#addClientOption(key, raw, source, origin)
    else this.fault(key, origin, `there is no such key${suggestion(key)}`)
  }

  #addKnown(key: ConfigKey, given: unknown, source: ConfigSource, origin: string): void {
    const row = rowOf(key)
    const raw = written(given, row.type === 'string' || row.type === 'list')
    const parsed = parseValue(row, raw)
    if (parsed.ok) {
      this.values[key] = parsed.value
      this.sources[key] = source
      if (row.secret && typeof parsed.value === 'string') this.secrets.add(parsed.value)
      if (row.acceptedIgnored) this.warnings.push(`The configuration key ${key} is accepted and ignored.`)
    } else {
      this.fault(key, origin, `${shown(key, raw, row.secret === true)} is not what it takes: ${parsed.expected}`)
    }
  }

  #addClientOption(key: string, given: unknown, source: ConfigSource, origin: string): void {
    const raw = written(given, isSecretKey(key))
    // In this section nobody but this engine can be meant, save by keys that are Kafka's own (`sasl.jaas.config`,
    // `ssl.…`): a file that several programs read has them, and whoever starts is told that nothing acts on them. The
    // environment may hold anything.
    const meant = suggestion(key)
    const strict = key.startsWith('broker.') && source !== 'environment'
    if (strict && (meant !== '' || !kafkasOwn.test(key))) {
      this.fault(key, origin, `there is no such key${meant}`)
      return
    }
    // Any other key may be meant for another client; one that differs from a row by a slip of the pen may not.
    const near = misspelledRow(key)
    if (near !== undefined) {
      this.fault(key, origin, `there is no such key; did you mean ${near}?`)
      return
    }
    this.extra[key] = raw
    this.sources[key] = source
    if (isSecretKey(key)) collectTexts(raw, this.secrets)
  }
}

/**
 * Brings the sources together – defaults < application < file < environment < command line – and checks everything.
 *
 * @throws EngineError CONFIG_INVALID with every fault at once, one a line.
 * @example
 * const config = loadConfig({ file: 'engine.yaml', environment: process.env, set: ['runtime.http.port=8081'] })
 * config.get('runtime.http.port') // 8081
 */
export function loadConfig(from: ConfigSources = {}): Config {
  const gathering = new Gathering()
  for (const key of configKeys) gathering.values[key] = rowOf(key).default
  for (const tree of [from.application ?? {}].flat()) {
    for (const given of flatten(tree ?? {})) gathering.add(given, 'application')
  }
  if (from.file !== undefined) addFile(gathering, from.file)
  if (from.environment !== undefined) {
    const { given, warnings } = fromEnvironment(from.environment)
    for (const one of given) gathering.add(one, 'environment')
    gathering.warnings.push(...warnings)
    for (const secret of secretsOfEnvironment(from.environment)) gathering.secrets.add(secret)
  }
  for (const setting of from.set ?? []) {
    const given = fromSetting(setting)
    if (given === undefined) gathering.fault(maskText(setting), 'command line', 'settings have the form key=value')
    else gathering.add(given, 'command line')
  }
  addSecretFiles(gathering)
  warnOfIdleOptions(gathering)
  warnOfComponents(gathering)
  const config = Config.fromPlain({
    values: Object.freeze(gathering.values),
    extra: Object.freeze(gathering.extra),
    sources: Object.freeze(gathering.sources),
    secrets: Object.freeze([...gathering.secrets]),
    warnings: Object.freeze(gathering.warnings),
  })
  for (const rule of crossRules) {
    if (rule.broken(config)) gathering.faults.push(`${rule.sentence} (${rule.keys.join(', ')})`)
  }
  if (gathering.faults.length > 0) throw invalid(gathering.faults, config)
  return config
}

/** A text is what the file says, as it stands there; everything else is what YAML takes it for. */
function written(given: unknown, asText: boolean): unknown {
  if (!(given instanceof Unquoted)) return given
  return asText ? given.text : given.value
}

function invalid(faults: readonly string[], config: Config): EngineError {
  const lines = faults.map((line) => config.maskText(line))
  const head = lines.length === 1 ? 'The configuration is not valid' : `The configuration has ${lines.length} faults`
  return new EngineError('CONFIG_INVALID', `${head}:\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

function addFile(gathering: Gathering, path: string): void {
  const origin = `file ${path}`
  let tree: unknown
  try {
    tree = readYaml(readFileSync(path, 'utf8'))
  } catch (error) {
    refuseTooManyFiles(error, path)
    gathering.faults.push(`${origin}: cannot be read as YAML: ${maskText(firstLine(messageOf(error)))}`)
    return
  }
  if (tree === null || tree === undefined) return
  if (typeof tree !== 'object' || Array.isArray(tree)) {
    gathering.faults.push(`${origin}: must hold a map of keys`)
    return
  }
  const seen = new Set<string>()
  for (const given of flatten(tree as Record<string, unknown>)) {
    // YAML itself refuses a name that stands twice in one place.
    if (seen.has(given.key)) gathering.fault(given.key, origin, 'stands there more than once; leave one of them')
    seen.add(given.key)
    gathering.add(given, 'file', origin)
  }
}

/** Better said once at start than found out by somebody who tunes an option that nothing reads. */
function warnOfIdleOptions(gathering: Gathering): void {
  const idle = Object.keys(gathering.extra).toSorted()
  if (idle.length === 0) return
  gathering.warnings.push(
    `These client options are accepted and shown, but nothing in this version acts on them: ${idle.join(', ')}.`,
  )
}

/** A level for a component that nobody writes under would be missed only once its lines are wanted. */
function warnOfComponents({ values, warnings }: Gathering): void {
  const levels = values['log.levels']
  if (typeof levels !== 'string') return
  const named = levels.split(',').map((pair) => pair.split('=', 1)[0] as string)
  const unknown = named.filter((component) => !logComponents.includes(component))
  if (unknown.length === 0) return
  warnings.push(`log.levels names ${unknown.join(', ')}; components of the log are ${logComponents.join(', ')}.`)
}

/** A secret that is given both directly and by file is a fault: nobody could tell which one is in force. */
function addSecretFiles(gathering: Gathering): void {
  for (const key of configKeys) {
    const fileKey = rowOf(key).fromFile
    const path = fileKey === undefined ? null : gathering.values[fileKey]
    if (fileKey === undefined || typeof path !== 'string') continue
    if (gathering.values[key] !== null) {
      gathering.faults.push(`${key} and ${fileKey} are both set; set one of them`)
      continue
    }
    const text = readSecret(gathering, fileKey, path)
    if (text !== undefined) gathering.add({ key, raw: text }, 'secret file', `${fileKey} ${path}`)
  }
  for (const [fileKey, path] of Object.entries(gathering.extra)) {
    const key = fileKey.replace(/[-.]file$/, '')
    if (key === fileKey || !isSecretKey(key) || typeof path !== 'string' || key in gathering.extra) continue
    const text = readSecret(gathering, fileKey, path)
    if (text !== undefined) gathering.add({ key, raw: text }, 'secret file', `${fileKey} ${path}`)
  }
}

function readSecret(gathering: Gathering, fileKey: string, path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim()
    if (text !== '') return text
    gathering.fault(fileKey, gathering.sources[fileKey] ?? 'default', `the file ${path} is empty`)
  } catch (error) {
    refuseTooManyFiles(error, path)
    gathering.fault(fileKey, gathering.sources[fileKey] ?? 'default', `cannot be read: ${firstLine(messageOf(error))}`)
  }
  return undefined
}

/** A YAML error goes on with an excerpt of the file, which may hold anything. */
function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string
}

function shown(key: string, raw: unknown, secret: boolean): string {
  if (secret || isSecretKey(key)) return mask
  const text = typeof raw === 'string' ? `'${raw}'` : (JSON.stringify(raw) ?? String(raw))
  return text.length > 80 ? `${text.slice(0, 77)}…` : text
}

/** Dots, dashes and underscores count as the same here: `broker.bootstrap.servers` is a slip of the pen too. */
function misspelledRow(key: string): ConfigKey | undefined {
  const alike = (name: string) => name.replace(/[-_]/g, '.').toLowerCase()
  const near = nearestName(alike(key), configKeys.filter(isClientOption).map(alike), 1)
  return configKeys.find((known) => alike(known) === near)
}

function suggestion(key: string): string {
  const near = nearestName(key, configKeys) ?? configKeys.find((known) => known.endsWith(`.${key}`))
  return near === undefined ? '' : `; did you mean ${near}?`
}

function collectTexts(value: unknown, into: Set<string>): void {
  if (typeof value === 'string') into.add(value)
  else if (typeof value === 'object' && value !== null) {
    for (const item of Object.values(value)) collectTexts(item, into)
  }
}
