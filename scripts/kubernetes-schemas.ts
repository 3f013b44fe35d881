/**
 * `node scripts/kubernetes-schemas.ts`: makes the schemas that kubeconform judges manifests by, from the API description in the Go module of
 * Kubernetes; into `$MILLRACE_CACHE/kubernetes-schemas`. Needs Go.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.ts'

export const kubernetesVersion = '1.33.0'

const folder = join(cacheFolder, 'kubernetes-schemas', kubernetesVersion)

/** For `-schema-location`; undefined where they were not made. */
export function schemaLocations(): string[] | undefined {
  return existsSync(folder) ? [join(folder, '{{ .ResourceKind }}{{ .KindSuffix }}.json')] : undefined
}

interface Schema {
  $ref?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  [more: string]: unknown
}

/** By kind, as kubeconform names them: the group's first word and the version behind it. */
const kinds: Readonly<Record<string, string>> = {
  'statefulset-apps-v1': 'io.k8s.api.apps.v1.StatefulSet',
  'service-v1': 'io.k8s.api.core.v1.Service',
  'configmap-v1': 'io.k8s.api.core.v1.ConfigMap',
  'poddisruptionbudget-policy-v1': 'io.k8s.api.policy.v1.PodDisruptionBudget',
  'networkpolicy-networking-v1': 'io.k8s.api.networking.v1.NetworkPolicy',
}

function moduleFolder(module: string, work: string): string {
  const env = { ...process.env, GOFLAGS: '-mod=mod' }
  const answer = execFileSync('go', ['mod', 'download', '-json', module], { cwd: work, env, encoding: 'utf8' })
  return (JSON.parse(answer) as { Dir: string }).Dir
}

/** Self-contained, and strict: members that are not described are refused. */
function strict(schema: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) as string
    // A number or a text, as Kubernetes has it; the description says text alone.
    if (name.endsWith('IntOrString')) return { type: ['string', 'integer'] }
    if (name.endsWith('Quantity')) return { type: ['string', 'number'] }
    return strict(definitions[name] as Schema, definitions)
  }
  const { properties, items, additionalProperties } = schema
  const made: Schema = { ...schema }
  delete made['x-kubernetes-group-version-kind']
  if (properties) {
    made.properties = Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [name, strict(one, definitions)]),
    )
    made.additionalProperties ??= false
  }
  if (items) made.items = strict(items, definitions)
  if (typeof additionalProperties === 'object') made.additionalProperties = strict(additionalProperties, definitions)
  return made
}

function make(): void {
  const work = mkdtempSync(join(tmpdir(), 'millrace-schemas-'))
  const made = join(work, 'made')
  mkdirSync(made)
  try {
    writeFileSync(join(work, 'go.mod'), 'module schemas\n\ngo 1.23\n')
    const write = (name: string, schema: Schema): void =>
      writeFileSync(join(made, `${name}.json`), JSON.stringify(schema))
    const api = join(moduleFolder(`k8s.io/kubernetes@v${kubernetesVersion}`, work), 'api/openapi-spec/swagger.json')
    const { definitions } = JSON.parse(readFileSync(api, 'utf8')) as { definitions: Record<string, Schema> }
    for (const [kind, name] of Object.entries(kinds)) write(kind, strict(definitions[name] as Schema, definitions))
    mkdirSync(join(folder, '..'), { recursive: true })
    rmSync(folder, { recursive: true, force: true })
    renameSync(made, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  if (schemaLocations() === undefined) make()
  process.stdout.write(`${folder}\n`)
}
