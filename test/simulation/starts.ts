/**
 * Starts over what is not as the last process left it: stores that are gone or an old copy, changelogs that were deleted or have
 * lost their end, a group without offsets. A start either brings everything to the last commit, or refuses with the reason; and
 * once things are as they were, it goes on. Changelogs that were deleted are written anew where that is asked for, from stores
 * that have everything, whatever breaks off meanwhile; then stores can be rebuilt from them.
 */
import type { WireError } from '../../src/base/errors.ts'
import { BrokerError, type CommittedOffset } from '../../src/broker/port.ts'
import { ChangelogEnds } from '../../src/engine/commit/changelog-ends.ts'
import { Commits } from '../../src/engine/commit/commits.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { StoreReplay } from '../../src/engine/restore/store-replay.ts'
import { changelogTopic } from '../../src/state/rows/changelog.ts'
import { checkRun, committed } from './checkers.ts'
import type { Tamper } from './faulty-broker.ts'
import { type Broken, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import { application } from './workload.ts'
import { type Mutant, World } from './world.ts'

type Offsets = ReadonlyArray<{ readonly topic: string; readonly partition: number; readonly offset: number }>
type Damage = 'stores-gone' | 'stores-old' | 'changelog-deleted' | 'changelog-anew' | 'changelog-cut' | 'offsets-gone'

const kinds: readonly Damage[] = [
  'stores-gone',
  'stores-old',
  'changelog-deleted',
  'changelog-anew',
  'changelog-anew',
  'changelog-cut',
  'offsets-gone',
]
const { stores: specs } = application({ next: () => undefined }).compile()

/** Nothing else goes wrong: what a start refuses, it refuses for what was done to it. */
const calm: Mutant['world'] = {
  asks: 0,
  breaks: null,
  diskFaults: null,
  foldsMs: 0,
  split: 'in-process',
  lateBoundaries: 0,
  records: 24,
  lostAnswer: 0,
  lostRequest: 0,
  zombies: 0,
  pauses: 0,
  clockJumps: 0,
  asyncShare: 0,
}

type BrokenStart = Broken & { readonly damage?: Damage }

class StartWorld extends World {
  /** What was done before the last start. */
  damage: Damage | undefined
  /** What a start is to refuse with. */
  #refusal: string | undefined
  #refused: string | undefined
  #isRunning = false
  /** Where a partition of a changelog seems to end. */
  #cut: Offsets[number] | undefined
  /** Lost changelogs are to be written anew. */
  #writesAnew = false
  /** So many calls get lost. */
  #losses = 0

  /** What is done in every run, where not by chance. */
  readonly #always: Damage | undefined

  constructor({ seed, mutant }: { readonly seed: number; readonly mutant: BrokenStart | Mutant }) {
    super({ seed, mutant })
    this.#always = 'damage' in mutant ? mutant.damage : undefined
  }

  override async run(): Promise<string[]> {
    await super.run()
    const { random } = this.scheduler
    // The last process did not write to every changelog: what it knows of the others it has found.
    if (random.chance(0.7)) await this.#resume(['k0'])
    if (this.violations.length > 0) return this.violations
    // Stores that are not kept on a disk do not know of commits that had nothing for them.
    const isOnDisk = this.derived.disk !== null
    this.damage = this.#always ?? random.pick(kinds.filter((kind) => isOnDisk || kind !== 'changelog-anew'))
    this.#refusal = await this.#harm(this.damage)
    if (this.#refusal !== undefined) await this.#isRefused()
    if (this.isRefusedForGood) return this.violations
    this.#refusal = undefined
    if (this.damage === 'changelog-anew' && random.chance(0.6)) await this.#breaksOff()
    await this.#resume(['k0', 'k1', 'k2'])
    if (this.damage !== 'changelog-anew' || this.violations.length > 0) return this.violations
    this.#writesAnew = false
    if (random.chance(0.5)) this.stores.lose()
    await this.#resume(['k0'])
    return this.violations
  }

  /** What was deleted does not come back. */
  get isRefusedForGood(): boolean {
    return this.damage === 'changelog-deleted' || (this.#writesAnew && this.#refusal !== undefined)
  }

  protected override settings(): Partial<EngineSettings> {
    return { ...super.settings(), ...(this.#writesAnew && { lostChangelogs: 'write-anew' }) }
  }

  protected override tamper(): Tamper {
    const known = super.tamper()
    return async (name, args, call, other) => {
      const lost = this.#losses > 0 ? this.scheduler.random.int(20) : -1
      if (lost === 0 || lost === 1) this.#losses--
      if (lost === 0) throw new BrokerError('UNREACHABLE', `the connection broke during ${name}`)
      const answer = await (known ? known(name, args, call, other) : call(args))
      if (lost === 1) throw new BrokerError('UNREACHABLE', `the connection broke behind ${name}`)
      if (this.#refusal === 'OFFSETS_MISSING' && name === 'committedOffsets')
        return (answer as CommittedOffset[]).map((each) => ({ ...each, offset: -1, metadata: '' }))
      const cut = this.#refusal === undefined ? undefined : this.#cut
      if (cut === undefined || name !== 'listOffsets' || args[1] === 'earliest') return answer
      return (answer as Offsets).map((each) =>
        each.topic === cut.topic && each.partition === cut.partition ? { ...each, offset: cut.offset } : each,
      )
    }
  }

  protected override isRefused({ code }: WireError): boolean {
    this.#refused = code
    return this.#refusal !== undefined
  }

  protected override heard({ type }: EngineFact): void {
    if (type === 'running') this.#isRunning = true
  }

  /** A process that does its work, and is stopped. */
  async #resume(keys: readonly string[]): Promise<void> {
    const newest = Math.max(...this.inputs.map(({ timestamp }) => timestamp))
    for (const key of keys) this.put(key, newest)
    this.start()
    await this.settle()
    this.end()
  }

  async #isRefused(): Promise<void> {
    this.#isRunning = false
    this.start()
    await this.until(() => this.#isRunning || this.#refused !== undefined, this.mostSteps)
    if (this.#refused !== this.#refusal)
      this.violate(`${this.damage}: expected ${this.#refusal}, and the start ${this.#refused ?? 'went on'}`)
  }

  async #deleteSome(): Promise<string | undefined> {
    const { random } = this.scheduler
    const all = [...specs.values()].map((spec) => changelogTopic('sim', spec))
    const topics = all.filter(() => random.chance(0.5))
    await this.client.deleteTopics(topics.length > 0 ? topics : all)
    this.#writesAnew = true
    if (random.chance(0.7)) {
      this.#losses = random.int(8)
      return undefined
    }
    this.stores.lose()
    return 'CHANGELOG_LOST'
  }

  /** A process that is killed while it starts, or soon after. */
  async #breaksOff(): Promise<void> {
    this.start()
    const until = this.scheduler.now + this.scheduler.random.next() * 400
    await this.until(() => this.scheduler.now > until, this.mostSteps)
  }

  /** What a start is to make of it; undefined: it goes on. */
  async #harm(damage: Damage): Promise<string | undefined> {
    const { random } = this.scheduler
    if (damage === 'changelog-anew') return this.#deleteSome()
    if (damage === 'stores-gone' || (damage !== 'stores-old' && random.chance(0.5))) this.stores.lose()
    if (damage === 'stores-old') for (const { id, backend } of this.remains) this.stores.putBack(id, backend)
    if (damage === 'offsets-gone') return 'OFFSETS_MISSING'
    if (damage === 'stores-gone' || damage === 'stores-old') return undefined
    const topic = changelogTopic('sim', random.pick([...specs.values()]))
    if (damage === 'changelog-deleted') {
      await this.client.deleteTopics([topic])
      return 'CHANGELOG_LOST'
    }
    const records = await committed(this.cluster, topic)
    if (records.length === 0) return undefined
    const { partition } = random.pick(records)
    const last = Math.max(...records.filter((each) => each.partition === partition).map(({ offset }) => offset))
    this.#cut = { topic, partition, offset: last }
    return 'CHANGELOG_LOST'
  }
}

export const mutants: readonly BrokenStart[] = [
  {
    name: 'commits-forget-the-stores',
    breaks: () => {
      const { take } = Commits.prototype
      return replaced(Commits.prototype, 'take', {
        value(this: Commits, { lost }: Parameters<typeof take>[0]) {
          take.call(this, { marks: '', lost })
        },
      })
    },
  },
  {
    name: 'any-store-will-do',
    // What is missing in it is missing in the changelog that is written from it.
    breaks: () => replaced(StoreReplay.prototype, 'hasAllOf', { value: () => true }),
  },
  {
    name: 'ends-that-were-found-are-forgotten',
    // It shows where one of them is missed, and by chance that is one run in fifty.
    damage: 'changelog-cut',
    breaks: () => replaced(ChangelogEnds.prototype, 'found', { value: () => undefined }),
  },
]

export async function runSeed(seed: number, mutant?: BrokenStart): Promise<Verdict> {
  const world = new StartWorld({ seed, mutant: { name: 'none', ...mutant, world: { ...calm, ...mutant?.world } } })
  const mend = mutant?.breaks?.()
  try {
    await world.run()
  } finally {
    mend?.()
  }
  const { cluster, inputs, stores, violations, derived, damage } = world
  if (violations.length === 0 && !world.isRefusedForGood) {
    const check = checkRun({ cluster, inputs, stores, specs, violate: (what) => world.violate(what) })
    if (!(await world.scheduler.drive(check))) world.violate('a transaction of the end stays open')
  }
  return { seed, derived, violations, story: damage ?? '', restarts: 0 }
}
