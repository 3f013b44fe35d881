import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '../../../src/base/clock.ts'
import { BrokerLink } from '../../../src/engine/recovery/broker-link.ts'

class Rig {
  readonly clock = new VirtualClock(1_700_000_000_000)
  readonly lines: string[] = []
  readonly link = new BrokerLink({ clock: this.clock, log: (level, message) => this.lines.push(`${level} ${message}`) })

  /** Looks as often as the engine does. */
  look(forMs: number, connected: (passedMs: number) => boolean, fault?: string): void {
    for (let passed = 0; passed < forMs; passed += 100) {
      this.link.look(connected(passed), connected(passed) ? undefined : fault)
      this.clock.advance(100)
    }
  }

  get downForMs(): number {
    return this.clock.now() - this.link.state.sinceMs
  }
}

describe('the link to the broker', () => {
  test('is down since its first fault, not since it was last up', () => {
    const rig = new Rig()
    rig.look(43_000, () => true)
    rig.look(5000, () => false)
    assert.equal(rig.link.state.connected, false)
    assert.equal(rig.downForMs, 5000)
  })

  test('is down for as long as it is, whatever the wall clock is set to meanwhile', () => {
    for (const jumpMs of [60_000, -60_000]) {
      const rig = new Rig()
      rig.look(5000, () => false)
      rig.clock.jump(jumpMs)
      rig.look(5000, () => false)
      assert.equal(rig.downForMs, 10_000)
    }
  })

  test('single answers in between are not the end of an outage', () => {
    const rig = new Rig()
    rig.look(30_000, (passed) => passed % 700 === 600)
    assert.equal(rig.link.state.connected, false)
    assert.equal(rig.downForMs, 30_000)
    rig.look(2000, () => true)
    assert.equal(rig.link.state.connected, true)
  })

  test('one part that hears answers does not speak for another that does not', () => {
    const rig = new Rig()
    rig.link.told('input', false, 'no answer to a fetch')
    rig.link.told('group', false, 'no answer to a heartbeat')
    rig.link.told('group', true)
    rig.look(3000, () => true)
    assert.equal(rig.link.state.connected, false)
    assert.equal(rig.link.state.fault, 'no answer to a fetch')
    rig.link.told('input', true)
    rig.look(3000, () => true)
    assert.equal(rig.link.state.connected, true)
  })

  test('an outage has one line with the reason, and one when it is over; a hiccup has none', () => {
    const rig = new Rig()
    rig.look(1000, () => false, 'kafka-1:9092 is not reachable')
    rig.look(5000, () => true)
    assert.deepEqual(rig.lines, [])
    rig.look(71_000, () => false, 'kafka-1:9092 is not reachable')
    rig.look(5000, () => true)
    assert.deepEqual(rig.lines, [
      'warn the broker has not answered for 2 s: kafka-1:9092 is not reachable',
      'info the broker answers again, after 72 s',
    ])
  })
})
