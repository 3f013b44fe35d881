/** The chart says the same as the kustomize base with its overlays; rendered by helm, judged by kubeconform. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { goTool } from '../support/go-tools.ts'
import { manifest, overlays, statefulSetOf } from '../support/manifests.ts'
import { kubernetesVersion, schemaLocations } from '../../scripts/kubernetes-schemas.ts'
import { chart, configOf, helm, ofKind, podOf, type Resource, render } from './support/chart.ts'

const kubeconform = goTool('kubeconform')
const noSchemas = schemaLocations() === undefined
const cannotJudge =
  kubeconform.missing || (noSchemas && 'the schemas are not there: node scripts/kubernetes-schemas.ts (needs Go)')

/** What a cluster knows by itself: the ServiceMonitor is the Prometheus operator's. */
function judge(all: readonly Resource[]): void {
  const resources = all.filter(({ kind }) => kind !== 'ServiceMonitor')
  const locations = (schemaLocations() ?? []).flatMap((location) => ['-schema-location', location])
  const input = resources.map((resource) => stringify(resource)).join('---\n')
  const args = ['-strict', '-kubernetes-version', kubernetesVersion, '-summary', ...locations]
  const { status, stdout } = spawnSync(kubeconform.path, args, { input, encoding: 'utf8' })
  assert.equal(status, 0, stdout)
  assert.match(stdout, new RegExp(`${resources.length} resources? found .* Valid: ${resources.length}, Invalid: 0`))
}

/** What an overlay makes of the base, with what kustomize adds to all. */
function kustomized(overlay: string): Resource[] {
  const files = ['service.yaml', 'disruption-budget.yaml', 'network-policy.yaml'].map((file) =>
    manifest<Resource>(`base/${file}`),
  )
  const monitor = manifest<Resource>('components/prometheus-operator/service-monitor.yaml')
  return [statefulSetOf(overlay) as unknown as Resource, ...files, monitor]
}

/** Lists of variables by name: their order says nothing. */
function comparable(spec: unknown): unknown {
  return JSON.parse(
    JSON.stringify(spec, (key, value) =>
      key === 'env' ? (value as Array<{ name: string }>).toSorted((a, b) => (a.name < b.name ? -1 : 1)) : value,
    ),
  )
}

describe('the chart', { skip: helm.missing }, () => {
  for (const mode of overlays) {
    test(`${mode}: is what the overlay makes of the base`, () => {
      const rendered = render(`mode=${mode}`, 'serviceMonitor.enabled=true')
      assert.equal(rendered.length, 6)
      for (const wanted of kustomized(mode)) {
        const { spec, metadata } = ofKind(rendered, wanted.kind)
        assert.equal(metadata.name, wanted.metadata.name)
        assert.equal(metadata.labels?.['app.kubernetes.io/name'], 'millrace-app')
        const own = structuredClone(spec) as { template?: { metadata: { annotations?: object } } }
        // kustomize puts the checksum of the configuration into the name of its ConfigMap.
        if (own.template) delete own.template.metadata.annotations
        assert.deepEqual(comparable(own), comparable(wanted.spec), wanted.kind)
      }
      const config = ofKind(rendered, 'ConfigMap').data?.['engine.yaml'] ?? ''
      assert.deepEqual(parse(config), manifest('base/engine.yaml'))
    })
  }

  test('takes image, pods, configuration, secrets and disks from its values', () => {
    const set = [
      'mode=hot-standby',
      'replicas=4',
      'image.tag=1.2.3',
      'config.engine.lanes.count=3',
      'config.engine.state.store=',
      'terminationGracePeriodSeconds=90',
      'state.storageClassName=fast',
    ]
    const secret = [
      'env[0].name=BROKER_SASL_PASSWORD',
      'env[0].valueFrom.secretKeyRef.name=kafka',
      'env[0].valueFrom.secretKeyRef.key=password',
    ]
    const rendered = render(...set, ...secret)
    const text = stringify(rendered)
    assert.match(text, /image: registry\.example\.com\/millrace-app:1\.2\.3/)
    assert.match(text, /storageClassName: fast/)
    assert.match(text, /terminationGracePeriodSeconds: 90/)
    assert.match(text, /secretKeyRef:\n\s+key: password/)
    assert.match(text, /name: HA_DESIRED_STANDBYS\n\s+value: "3"/)
    const config = parse(ofKind(rendered, 'ConfigMap').data?.['engine.yaml'] ?? '')
    assert.deepEqual(config.engine, { lanes: { count: 3 }, state: { store: '' } }, 'an empty value is one, too')
    const lanes = configOf(render('config.engine.lanes.count=3')).get('engine.lanes.count')
    assert.equal(lanes, 3, 'what the pods run with')
    assert.equal(rendered.length, 5, 'a ServiceMonitor only where it is asked for')
    const of = (other: string): string => {
      const { template } = ofKind(render(other), 'StatefulSet').spec as {
        template: { metadata: { annotations: object } }
      }
      return JSON.stringify(template.metadata.annotations)
    }
    assert.notEqual(of('config.a.b=1'), of('config.a.b=2'), 'pods are replaced when their configuration changes')
  })

  test('serves over TLS and behind a token from secrets: probes and the ServiceMonitor ask so, too', () => {
    const secrets = ['http.tlsSecret=orders-tls', 'http.tokenSecret=orders-token', 'serviceMonitor.enabled=true']
    const own = ['volumes[0].name=kafka-ca', 'volumes[0].secret.secretName=kafka-ca']
    const mounts = ['volumeMounts[0].name=kafka-ca', 'volumeMounts[0].mountPath=/etc/kafka-ca']
    const rendered = render(...secrets, ...own, ...mounts)
    const { containers, volumes } = podOf(rendered)
    const [app] = containers
    for (const probe of [app.startupProbe, app.livenessProbe, app.readinessProbe]) {
      assert.equal(probe.httpGet.scheme, 'HTTPS')
    }
    // Each file that a variable names lies in a volume that is mounted there.
    const files = app.env.filter(({ name }) => name.endsWith('_FILE'))
    assert.deepEqual(files.map(({ name }) => name).sort(), [
      'RUNTIME_HTTP_AUTH_TOKEN_FILE',
      'RUNTIME_HTTP_TLS_CERT_FILE',
      'RUNTIME_HTTP_TLS_KEY_FILE',
    ])
    const secretAt = (path: string): string | undefined => {
      const mount = app.volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`))
      return volumes.find(({ name }) => name === mount?.name)?.secret?.secretName
    }
    assert.deepEqual(
      files.map(({ value }) => secretAt(`${value}`)),
      ['orders-tls', 'orders-tls', 'orders-token'],
    )
    assert.equal(secretAt('/etc/kafka-ca/ca.crt'), 'kafka-ca')
    const { endpoints } = ofKind(rendered, 'ServiceMonitor').spec as { endpoints: unknown[] }
    assert.deepEqual(endpoints, [
      {
        port: 'http',
        path: '/metrics',
        interval: '15s',
        scheme: 'https',
        tlsConfig: { ca: { secret: { name: 'orders-tls', key: 'ca.crt' } }, serverName: 'millrace-app.default.svc' },
        authorization: { credentials: { name: 'orders-token', key: 'token' } },
      },
    ])
    if (cannotJudge === false) judge(rendered)
  })

  test('asks over TLS where the configuration itself names a certificate', () => {
    const { containers } = podOf(render('config.runtime.http.tls.cert-file=/certs/tls.crt'))
    assert.equal(containers[0].readinessProbe.httpGet.scheme, 'HTTPS')
  })

  test('refuses values that it does not know', () => {
    assert.throws(() => render('mode=three'), /mode/)
    assert.throws(() => render('repliccas=3'), /repliccas/)
  })

  for (const mode of overlays) {
    test(`${mode}: is valid for Kubernetes ${kubernetesVersion}, as the overlay is`, { skip: cannotJudge }, () => {
      judge(render(`mode=${mode}`, 'serviceMonitor.enabled=true'))
      judge(kustomized(mode))
    })
  }

  test('the judge sees a slip', { skip: cannotJudge }, () => {
    const [slip] = kustomized('single').map((resource) => ({ ...resource, spec: { ...resource.spec, repliccas: 1 } }))
    assert.throws(() => judge([slip as Resource]), /repliccas/)
  })
})

test('the chart has the configuration of the base', () => {
  assert.equal(
    readFileSync(join(chart, 'engine.yaml'), 'utf8'),
    readFileSync(join(chart, '../kubernetes/base/engine.yaml'), 'utf8'),
  )
})
