/** One simulated process: the real coordinator with its shell, and the model engine, on the world's scheduler. */
import { Random } from '../../src/base/random.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { HaCommandToEngine, HaFact } from '../../src/engine/ha-contract.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { HaSettings } from '../../src/ha/contract.ts'
import { Coordinator, defaultRules } from '../../src/ha/coordinator.ts'
import { CoordinatorShell, type Machine } from '../../src/ha/coordinator-shell.ts'
import type { HaEffect, HaEvent } from '../../src/ha/events.ts'
import type { Pod } from '../../src/ha/pod.ts'
import type { Rules } from '../../src/ha/standby.ts'
import { Channel } from '../simulation/links.ts'
import type { Derived } from './derived.ts'
import type { EngineFlaws } from './model-engine.ts'
import type { SimEngine } from './stage.ts'
import type { Scheduler } from '../simulation/scheduler.ts'

/** A change to the protocol that the checkers must notice. */
export interface Mutant {
  readonly name: string
  readonly rules?: Partial<Rules>
  readonly engine?: EngineFlaws
  /** What its runs have more or less of than others, so that what it takes for the mistake to show comes together. */
  readonly world?: Partial<Derived>
  readonly settings?: Partial<HaSettings>
  /** Once, when the pod is made. */
  readonly prepare?: (pod: Pod) => void
  readonly event?: (event: HaEvent, pod: Pod) => readonly HaEvent[]
  readonly effect?: ((effect: HaEffect, pod: Pod) => readonly HaEffect[]) | undefined
  /** A mistake in the real engine, which the pods run then; gives what mends it. */
  readonly breaks?: () => () => void
}

export interface SimPodOptions {
  readonly scheduler: Scheduler
  readonly owner: number
  readonly settings: HaSettings
  readonly coordinatorBroker: BrokerPort
  readonly makeEngine: (fact: (fact: EngineFact | HaFact) => void) => SimEngine
  readonly seed: number
  readonly clockRate: number
  readonly messageMs: number
  readonly mutant: Mutant | undefined
  readonly log: (line: string) => void
  readonly failed: () => void
  readonly engineFailed: () => void
  readonly broken: (what: string) => void
  readonly told: (command: HaCommandToEngine) => void
}

export class SimPod {
  readonly owner: number
  readonly podId: string
  readonly ha: CoordinatorShell
  readonly engine: SimEngine
  readonly incarnation: string
  /** Since when the coordinator has shown the state it shows. */
  stateSince = 0
  dead = false
  stopping = false
  #shown = ''

  constructor(options: SimPodOptions) {
    const { scheduler, owner, settings, mutant, messageMs, clockRate } = options
    this.owner = owner
    this.podId = settings.podId
    const latency = (): number => scheduler.random.next() * messageMs
    const timers = scheduler.timers(owner, clockRate)
    const toEngine = new Channel<HaCommandToEngine>(
      scheduler as never,
      owner,
      (command) => this.engine.command(command),
      latency,
    )
    const toControl = new Channel<EngineFact | HaFact>(
      scheduler as never,
      owner,
      (fact) => this.ha.engineFact(fact),
      latency,
    )
    this.engine = options.makeEngine((fact) => {
      if (fact.type === 'failed') {
        const { code, message } = fact.error
        options.log(`its engine fails: ${code} ${message}`)
        // What only the process can cure its supervisor cures; anything else is a mistake.
        if (code !== 'RESTARTS_EXHAUSTED' && code !== 'FENCED') options.broken(`its engine fails: ${code} ${message}`)
      }
      toControl.send(fact)
    })
    const rules: Rules = { ...defaultRules, ...mutant?.rules }
    const machine = new Coordinator({ ...settings, ...mutant?.settings }, new Random(options.seed), rules)
    mutant?.prepare?.(machine.pod)
    this.incarnation = machine.pod.incarnation
    this.ha = new CoordinatorShell(
      {
        broker: options.coordinatorBroker,
        settings,
        engine: (command) => {
          options.told(command)
          toEngine.send(command)
        },
        clock: scheduler.clockOf(clockRate, owner * 1_000_000),
        timers,
        random: new Random(options.seed),
        log: (_, message) => options.log(message),
        fail: () => options.failed(),
        changed: () => {
          const shown = `${this.ha.role}/${this.ha.state}`
          if (shown !== this.#shown) this.stateSince = scheduler.now
          if (this.ha.state === 'FAILED' && shown !== this.#shown) options.engineFailed()
          this.#shown = shown
        },
      },
      tampered(machine, mutant),
    )
  }

  start(): void {
    this.engine.start()
    void this.ha.start()
  }

  /** The operator's pause or unpause on this pod. */
  pause(paused: boolean): void {
    this.engine.setPaused(paused)
    this.ha.pauseIntent(paused)
  }
}

function tampered(machine: Coordinator, mutant: Mutant | undefined): Machine {
  const { event: changeEvent, effect: changeEffect } = mutant ?? {}
  if (!changeEvent && !changeEffect) return machine
  const { pod } = machine
  return {
    pod,
    step: (event, now) => {
      const events = changeEvent ? changeEvent(event, pod) : [event]
      const effects = events.flatMap((each) => machine.step(each, now))
      return changeEffect ? effects.flatMap((each) => changeEffect(each, pod)) : effects
    },
  }
}
