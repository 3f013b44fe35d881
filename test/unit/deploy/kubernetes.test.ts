/** The Kubernetes manifests agree with each other and with what the program understands. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { loadConfig } from '../../../src/config/load.ts'
import { type Container, environmentOf, manifest, overlays, statefulSetOf } from '../../support/manifests.ts'

const folder = join(import.meta.dirname, '..', '..', '..', 'deploy', 'kubernetes')
const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const

interface Selecting {
  readonly spec: {
    readonly selector?: { readonly matchLabels?: object }
    readonly podSelector?: { readonly matchLabels: object }
    readonly ports?: ReadonlyArray<{ readonly targetPort: string }>
  }
}

describe('the Kubernetes manifests', () => {
  test('there is an overlay for each way to run', () => {
    assert.deepEqual(overlays, ['group', 'hot-standby', 'single'])
  })

  test('every file of the base is one of its resources', () => {
    const { resources } = manifest<{ readonly resources: string[] }>('base/kustomization.yaml')
    const files = readdirSync(join(folder, 'base')).filter((name) => !/^(kustomization|engine)\.yaml$/.test(name))
    assert.deepEqual(resources.toSorted(), files.sort())
    for (const overlay of overlays) {
      const { resources: above } = manifest<{ readonly resources: string[] }>(`overlays/${overlay}/kustomization.yaml`)
      for (const path of above) assert.ok(existsSync(join(folder, 'overlays', overlay, path)))
    }
  })

  test('what selects pods selects these', () => {
    const { spec } = statefulSetOf('single')
    const labels = spec.template.metadata.labels
    assert.deepEqual(spec.selector.matchLabels, labels)
    const service = manifest<Selecting>('base/service.yaml')
    assert.deepEqual(service.spec.selector, labels)
    assert.deepEqual(manifest<Selecting>('base/disruption-budget.yaml').spec.selector?.matchLabels, labels)
    assert.deepEqual(manifest<Selecting>('base/network-policy.yaml').spec.podSelector?.matchLabels, labels)
    assert.equal(
      spec.serviceName,
      manifest<{ readonly metadata: { readonly name: string } }>('base/service.yaml').metadata.name,
    )
  })

  for (const overlay of overlays) {
    const set = statefulSetOf(overlay)
    const pod = set.spec.template.spec
    const [container] = pod.containers as readonly [Container]

    test(`${overlay}: the program understands the environment and the configuration`, () => {
      const environment = environmentOf(set, '/state')
      const config = loadConfig({ file: join(folder, 'base', 'engine.yaml'), environment })
      assert.deepEqual(config.warnings, [])
      // A name that is none of the program's would be passed over in silence.
      for (const [name, value] of Object.entries(environment)) {
        const key = Object.keys(keysByVariable).includes(name) ? keysByVariable[name] : undefined
        assert.ok(key !== undefined, `${name} sets nothing`)
        assert.equal(String(config.get(key as never)), value, name)
      }
      const isStandby = config.get('ha.mode') === 'hot-standby'
      assert.equal(isStandby, overlay === 'hot-standby')
      if (isStandby) assert.equal(set.spec.replicas, config.get('ha.desired-standbys') + 1)
      assert.equal(config.get('topology.sub-topology-split') === 'repartition-topics', overlay === 'group')
      assert.ok(pod.terminationGracePeriodSeconds * 1000 > config.get('runtime.shutdown.timeout') * 2)
      const [port] = container.ports
      assert.equal(port?.containerPort, config.get('runtime.http.port'))
      for (const probe of probes) assert.equal(container[probe].httpGet.port, port?.name)
    })

    test(`${overlay}: what is mounted is there`, () => {
      const there = [
        ...pod.volumes.map(({ name }) => name),
        ...set.spec.volumeClaimTemplates.map((v) => v.metadata.name),
      ]
      assert.deepEqual(container.volumeMounts.map(({ name }) => name).sort(), there.sort())
      const state = environmentOf(set, '/state').ENGINE_STATE_DIR
      assert.ok(container.volumeMounts.some(({ mountPath }) => mountPath === state))
    })
  }
})

const keysByVariable: Readonly<Record<string, string>> = {
  ENGINE_STATE_DIR: 'engine.state.dir',
  ENGINE_LANES_COUNT: 'engine.lanes.count',
  ENGINE_INSTANCE_ID: 'engine.instance-id',
  HA_MODE: 'ha.mode',
  HA_DESIRED_STANDBYS: 'ha.desired-standbys',
  HA_POD_ID: 'ha.pod-id',
  TOPOLOGY_SUB_TOPOLOGY_SPLIT: 'topology.sub-topology-split',
}
