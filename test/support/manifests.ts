/** The Kubernetes manifests of `deploy/kubernetes`, and what an overlay makes of the base. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const folder = join(import.meta.dirname, '..', '..', 'deploy', 'kubernetes')

export const overlays = readdirSync(join(folder, 'overlays')).sort()

export interface EnvEntry {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } }
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

export interface Container {
  readonly name: string
  readonly image: string
  readonly env: readonly EnvEntry[]
  readonly ports: ReadonlyArray<{ readonly name: string; readonly containerPort: number }>
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly volumeMounts: ReadonlyArray<{ readonly name: string; readonly mountPath: string }>
}

type Labels = Readonly<Record<string, string>>

export interface StatefulSet {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly serviceName: string
    readonly replicas: number
    readonly selector: { readonly matchLabels: Labels }
    readonly template: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly containers: readonly Container[]
        readonly volumes: ReadonlyArray<{ readonly name: string }>
      }
    }
    readonly volumeClaimTemplates: ReadonlyArray<{ readonly metadata: { readonly name: string } }>
  }
}

export function manifest<T>(path: string): T {
  return parse(readFileSync(join(folder, path), 'utf8'), { prettyErrors: true }) as T
}

interface Kustomization {
  readonly resources: readonly string[]
  readonly patches?: ReadonlyArray<{ readonly target: { readonly kind: string }; readonly patch: string }>
}

/** Merges as kustomize does for what is used here: objects by member, lists of named things by name. */
function merged(base: unknown, patch: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(patch) && patch.every((item) => typeof item?.name === 'string')) {
    const changed = base.map((item) => {
      const change = patch.find(({ name }) => name === item.name)
      return change === undefined ? item : merged(item, change)
    })
    return [...patch.filter(({ name }) => !base.some((item) => item.name === name)), ...changed]
  }
  if (typeof base !== 'object' || typeof patch !== 'object' || base === null || patch === null) return patch
  if (Array.isArray(base) || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(patch)) {
    result[name] = name in result ? merged(result[name], value) : value
  }
  return result
}

export function statefulSetOf(overlay: string): StatefulSet {
  const { patches = [] } = manifest<Kustomization>(`overlays/${overlay}/kustomization.yaml`)
  const base = manifest<unknown>('base/statefulset.yaml')
  return patches.reduce((set, { patch }) => merged(set, parse(patch)), base) as StatefulSet
}

/** The environment of the first pod, with `/state` in another place. */
export function environmentOf(set: StatefulSet, stateFolder: string): Record<string, string> {
  const [container] = set.spec.template.spec.containers
  const entries = (container as Container).env.map(({ name, value, valueFrom }): [string, string] => {
    if (valueFrom === undefined) return [name, (value ?? '').replace(/^\/state/, stateFolder)]
    if (valueFrom.fieldRef.fieldPath === 'metadata.name') return [name, `${set.metadata.name}-0`]
    throw new Error(`${name}: ${valueFrom.fieldRef.fieldPath} is not known here`)
  })
  return Object.fromEntries(entries)
}
