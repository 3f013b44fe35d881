/** The Helm chart as it is rendered, and what its pods run with. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { kubernetesVersion } from '../../../scripts/kubernetes-schemas.ts'
import type { Config } from '../../../src/config/config.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { repositoryRoot } from '../../groups.ts'
import { goTool } from '../../support/go-tools.ts'

export const chart = join(repositoryRoot, 'deploy', 'helm')
export const helm = goTool('helm')

export interface Resource {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: Readonly<Record<string, unknown>>
  readonly data?: Readonly<Record<string, string>>
}

export const render = (...set: readonly string[]): Resource[] => renderChart(chart, ...set)

/** Another chart: one whose engine.yaml is a project's own. */
export function renderChart(folder: string, ...set: readonly string[]): Resource[] {
  const args = [
    'template',
    'millrace-app',
    folder,
    '--kube-version',
    kubernetesVersion,
    ...set.flatMap((one) => ['--set', one]),
  ]
  const text = execFileSync(helm.path, args, { encoding: 'utf8', stdio: 'pipe' })
  return parseAllDocuments(text).map((document) => document.toJS() as Resource)
}

export const ofKind = (resources: readonly Resource[], kind: string): Resource => {
  const found = resources.find((resource) => resource.kind === kind)
  assert.ok(found, `there is no ${kind}`)
  return found
}

interface Probe {
  readonly httpGet: { readonly scheme?: string }
}

interface Pod {
  readonly terminationGracePeriodSeconds: number
  readonly containers: readonly [
    {
      readonly env: ReadonlyArray<{ readonly name: string; readonly value?: string }>
      readonly ports: ReadonlyArray<{ readonly name: string; readonly containerPort: number }>
      readonly volumeMounts: ReadonlyArray<{ readonly name: string; readonly mountPath: string }>
      readonly startupProbe: Probe
      readonly livenessProbe: Probe
      readonly readinessProbe: Probe
    },
  ]
  readonly volumes: ReadonlyArray<{ readonly name: string; readonly secret?: { readonly secretName: string } }>
}

export const podOf = (resources: readonly Resource[]): Pod =>
  (ofKind(resources, 'StatefulSet').spec as { template: { spec: Pod } }).template.spec

/** The configuration of the pod `orders-0`: that of the ConfigMap under the variables of the pod, as the engine reads them. */
export function configOf(resources: readonly Resource[]): Config {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chart-'))
  try {
    const file = join(folder, 'engine.yaml')
    writeFileSync(file, ofKind(resources, 'ConfigMap').data?.['engine.yaml'] ?? '')
    const { env } = podOf(resources).containers[0]
    const environment = Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'orders-0']))
    return loadConfig({ file, environment })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
