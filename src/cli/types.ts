/** `millrace types`: TypeScript types for Avro schemas, of files or of the subjects of a registry. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { loadConfig } from '../config/load.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { isEmbedded, keptSchemas } from '../runtime/schemas/embedded-folder.ts'
import { registryCallOf } from '../runtime/schemas/registry-call.ts'
import { type AvroNode, parseAvro } from '../serde/registry/avro/avro-schema.ts'
import { avroShapeFault } from '../serde/registry/avro/avro-shape.ts'
import { avroTypeScript } from '../serde/registry/avro/avro-typescript.ts'
import { RegistryClient } from '../serde/registry/client.ts'
import { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { RegistryCall } from '../serde/registry/transport.ts'

export interface TypesArguments {
  readonly config?: string
  readonly set: readonly string[]
  readonly longs: string
  readonly out?: string
}

const head = '/** Made by `millrace types` from Avro schemas; make it anew rather than change it. */\n\n'

/** Writes the types to the file, or gives their text. */
export async function makeTypes(sources: readonly string[], args: TypesArguments): Promise<string> {
  const { longs, out } = args
  if (longs !== 'number' && longs !== 'bigint') {
    throw new EngineError('USAGE', `--longs is '${longs}'; it is number or bigint.`)
  }
  const schemas: AvroNode[] = []
  let client: RegistryClient | undefined
  for (const source of sources) {
    // A subject of this name is a file that others import.
    if (source.endsWith('.proto')) throw notAvro(source, 'PROTOBUF')
    if (source.endsWith('.avsc')) {
      schemas.push(schemaOf(readFile(source), source))
      continue
    }
    client ??= clientOf(args)
    schemas.push(...(await subjectSchemas(client, source)))
  }
  const text = head + avroTypeScript(schemas, { longs })
  if (out === undefined) return text
  writeFile(out, text)
  return ''
}

function writeFile(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new EngineError('USAGE', `--out: ${path} cannot be written (${code}); name a file that can.`)
  }
}

function clientOf({ config: file, set }: TypesArguments): RegistryClient {
  const config = loadConfig({ environment: process.env, set, ...(file !== undefined && { file }) })
  const url = config.get('schema-registry.url')
  if (url === null)
    throw new EngineError('USAGE', 'Subjects are read from a registry: name it with --set schema-registry.url=…')
  return new RegistryClient(isEmbedded(url) ? embeddedCall(url) : registryCallOf(config))
}

/** Of the schemas in the folder: nothing is written to it, an application may be running with it. */
function embeddedCall(url: string): RegistryCall {
  const kept = readKept(url)
  if (kept === undefined) {
    const where = 'name the folder that the application keeps its schemas in, or the address of a registry'
    const message = `schema-registry.url is '${url}', a registry without a folder: it ends with its process; ${where}.`
    throw new EngineError('USAGE', message)
  }
  if (kept.contents === undefined) {
    const message = `There are no schemas in ${dirname(kept.file.path)}: name the folder that the application runs with.`
    throw new EngineError('USAGE', message)
  }
  return new EmbeddedRegistry(kept.contents).call
}

function readKept(url: string): ReturnType<typeof keptSchemas> {
  try {
    return keptSchemas(url)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (EngineError.is(error)) throw error
    throw new EngineError('USAGE', `The folder of schema-registry.url, '${url}', cannot be read (${code}).`)
  }
}

async function subjectSchemas(client: RegistryClient, subject: string): Promise<AvroNode[]> {
  const schema = await client.newest(subject).catch((error: unknown) => {
    throw new EngineError('USAGE', `The subject ${subject} cannot be had from the registry: ${messageOf(error)}.`)
  })
  if (schema.type !== 'AVRO') throw notAvro(`The subject ${subject}`, schema.type)
  return [...schema.references.map(({ text }) => text), schema.text].map((text) => schemaOf(text, subject))
}

function notAvro(what: string, type: 'PROTOBUF' | 'JSON'): EngineError {
  const instead =
    type === 'PROTOBUF' ? 'protoc-gen-es (the package @bufbuild/protoc-gen-es)' : 'json-schema-to-typescript'
  return new EngineError('USAGE', `${what} holds ${type}; make its types with ${instead}.`)
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new EngineError('USAGE', `The file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}

function schemaOf(text: string, source: string): AvroNode {
  const none = (why: string): EngineError => new EngineError('USAGE', `${source} is no Avro schema: ${why}.`)
  let schema: AvroNode
  try {
    schema = parseAvro(text)
  } catch (error) {
    throw none(messageOf(error))
  }
  const fault = avroShapeFault(schema)
  if (fault !== undefined) throw none(fault)
  return schema
}
