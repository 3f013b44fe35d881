/** What the values of the chart say, pods run with; where two of them contradict each other, the chart says so. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { overlays } from '../support/manifests.ts'
import { configOf, helm, ofKind, render } from './support/chart.ts'

describe('the number of pods', { skip: helm.missing }, () => {
  const replicasOf = (...set: string[]): unknown => ofKind(render(...set), 'StatefulSet').spec?.replicas

  test('of one identity is one at most', () => {
    assert.throws(
      () => render('replicas=3'),
      /replicas is 3, but `mode` is single: .* set mode to hot-standby or group/,
    )
    assert.equal(replicasOf('replicas=1'), 1)
  })

  for (const mode of overlays) {
    test(`${mode}: may be none, to which a release is scaled down`, () => {
      assert.equal(replicasOf(`mode=${mode}`, 'replicas=0'), 0)
      assert.ok(configOf(render(`mode=${mode}`, 'replicas=0')).get('ha.desired-standbys') >= 0)
      assert.equal(replicasOf(`mode=${mode}`, 'replicas=null'), mode === 'single' ? 1 : 3)
    })
  }
})
