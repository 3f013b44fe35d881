/** The environment and the probes of the manifests, driven against real processes: no cluster runs here. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { environmentOf, overlays, statefulSetOf } from '../support/manifests.ts'
import { eventually, startMillrace } from '../support/millrace.ts'
import { freePort } from '../../scripts/free-ports.ts'

const root = join(import.meta.dirname, '..', '..')
const app = join(root, 'test', 'cli', 'apps', 'totals.ts')
const engineFile = join(root, 'deploy', 'kubernetes', 'base', 'engine.yaml')
const folder = mkdtempSync(join(tmpdir(), 'millrace-kubernetes-'))

describe('what the manifests say, done by hand', () => {
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const overlay of overlays) {
    test(`${overlay}: a pod starts, answers its probes, and ends cleanly when it is told to`, async () => {
      const set = statefulSetOf(overlay)
      const state = join(folder, overlay)
      mkdirSync(state)
      const [container] = set.spec.template.spec.containers
      assert.ok(container)
      const port = await freePort()
      // The manifest's own, save for where the broker is and the port, of which this machine has only one.
      const env = {
        ...environmentOf(set, state),
        BROKER_BOOTSTRAP_SERVERS: 'embedded:',
        RUNTIME_HTTP_PORT: String(port),
        RUNTIME_HTTP_HOST: '127.0.0.1',
      }
      const pod = startMillrace(['run', app, '--config', engineFile], { env })
      const answers = async (path: string): Promise<boolean> => {
        assert.equal(pod.child.exitCode, null, pod.stderr())
        // Before it listens the connection is refused, which is a failed probe.
        const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
        return answer?.status === 200
      }
      try {
        for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
          await eventually(`${probe} succeeds`, () => answers(container[probe].httpGet.path), 120_000)
        }
      } finally {
        pod.child.kill('SIGTERM')
      }
      const { code, stderr } = await pod.result
      assert.equal(code, 0, stderr)
    })
  }
})
