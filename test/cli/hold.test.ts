/** Several feeds of a run that ends with them: nothing is processed before all are in, and all of it afterwards. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { holdInput } from '../../src/cli/feed/hold.ts'
import { Lifecycle, pausableStates, unpausableStates } from '../../src/view/lifecycle.ts'
import type { CommandResult, LifecycleState, StateSnapshot } from '../../src/view/view.ts'

/** A lifecycle that takes and refuses commands as an engine's does. */
class Engine {
  readonly lifecycle = new Lifecycle(0, 10, () => undefined)
  readonly view = { state: () => ({ current: this.lifecycle.state }) as StateSnapshot }
  readonly commands = {
    pause: () => this.#told(pausableStates, 'DRAINING'),
    unpause: () => this.#told(unpausableStates, 'RUNNING'),
  }

  constructor(...states: readonly LifecycleState[]) {
    this.go(...states)
  }

  go(...states: readonly LifecycleState[]): void {
    for (const state of states) this.lifecycle.transition(state, 0)
  }

  #told(allowed: readonly LifecycleState[], to: LifecycleState): CommandResult {
    const { state } = this.lifecycle
    if (!allowed.includes(state)) return { ok: false, reason: `the state is ${state}` }
    this.go(to)
    return { ok: true, state: to }
  }
}

const { signal } = new AbortController()

describe('holding the input back while feeds are sent', { concurrency: true }, () => {
  test('waits for the start', async () => {
    const engine = new Engine('STARTING')
    const held = holdInput(engine, signal)
    engine.go('RESTORING', 'RUNNING')
    assert.ok(await held)
    assert.equal(engine.lifecycle.state, 'DRAINING')
  })

  test('lets it in behind a restart in place that is under way when the feeds are in', async () => {
    const engine = new Engine('STARTING', 'RUNNING')
    const letIn = await holdInput(engine, signal)
    engine.go('PAUSED', 'RESTARTING')
    const done = letIn?.()
    // As an engine that was told to pause comes out of a restart.
    engine.go('DRAINING', 'PAUSED')
    await done
    assert.equal(engine.lifecycle.state, 'RUNNING')
  })

  test('waits for nothing where somebody else has let it in, or the engine has failed', async () => {
    for (const states of [['RUNNING'], ['FAILED']] as const) {
      const engine = new Engine('STARTING', 'RUNNING')
      const letIn = await holdInput(engine, signal)
      engine.go(...states)
      await letIn?.()
      assert.equal(engine.lifecycle.state, states[0])
    }
    assert.equal(await holdInput(new Engine('STARTING', 'FAILED'), signal), undefined)
  })
})
