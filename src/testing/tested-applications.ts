/** The applications that a driver runs: who is meant where a test names none of them. */
import { EngineError } from '../base/errors.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { DriverOptions, DroppedRecord } from './contract.ts'
import { ApplicationOfTest, type Tested } from './tested-application.ts'
import type { VirtualApplication } from './virtual-application.ts'

export class ApplicationsOfTest {
  readonly all: readonly ApplicationOfTest[]
  /** Of all, in the order in which they were dropped. */
  readonly drops: DroppedRecord[] = []
  readonly warnings: string[] = []

  constructor(
    tested: readonly Tested[],
    options: DriverOptions,
    registry: EmbeddedRegistry,
    partitionsOf: (topic: string) => number,
    restart: (app: VirtualApplication) => Promise<void>,
  ) {
    checkIds(tested, options)
    const isOne = tested.length === 1
    this.all = tested.map((one) => {
      const dropped = (record: DroppedRecord): void => void this.drops.push(record)
      const warned = (message: string): void =>
        void this.warnings.push(isOne ? message : `${one.applicationId}: ${message}`)
      return new ApplicationOfTest(one, options, registry, partitionsOf, { dropped, warned, restart })
    })
  }

  /** The only one. */
  single(member: string): ApplicationOfTest {
    const [first] = this.all as [ApplicationOfTest]
    if (this.all.length === 1) return first
    throw new EngineError(
      'USAGE',
      `Each of the applications ${this.#ids()} has its own ${member}: ` +
        `take that of one, application('${first.applicationId}').${member}.`,
    )
  }

  of(applicationId: string): ApplicationOfTest {
    const found = this.all.find((one) => one.applicationId === applicationId)
    if (found) return found
    throw new EngineError('USAGE', `There is no application ${applicationId} (applications: ${this.#ids()}).`)
  }

  /** The one that has a store of this name. */
  withStore(name: string): ApplicationOfTest {
    const [first, ...others] = this.all as [ApplicationOfTest, ...ApplicationOfTest[]]
    if (others.length === 0) return first
    const [found, ...more] = this.all.filter(({ topology }) => topology.stores.has(name))
    if (found && more.length === 0) return found
    if (found) {
      const ids = [found, ...more].map(({ applicationId }) => applicationId).join(', ')
      throw new EngineError(
        'USAGE',
        `The applications ${ids} have a store ${name} each: ` +
          `take that of one, application('${found.applicationId}').store('${name}').`,
      )
    }
    const known = this.all.map(
      ({ applicationId, topology }) => `${applicationId}: ${[...topology.stores.keys()].join(', ') || 'none'}`,
    )
    throw new EngineError('USAGE', `No application has a store ${name} (stores of ${known.join('; of ')}).`)
  }

  /** What each one says, behind its id; a single one says it alone. */
  told(says: (one: ApplicationOfTest) => string): string {
    const [first, ...others] = this.all as [ApplicationOfTest, ...ApplicationOfTest[]]
    if (others.length === 0) return says(first)
    return this.all.map((one) => `${one.applicationId}:\n${says(one)}`).join('\n\n')
  }

  #ids(): string {
    return this.all.map(({ applicationId }) => applicationId).join(', ')
  }
}

function checkIds(tested: readonly Tested[], { applications = {} }: DriverOptions): void {
  const ids = tested.map(({ applicationId }) => applicationId)
  if (ids.length === 0) throw new EngineError('USAGE', 'A test driver needs an application: the list of them is empty.')
  const twice = ids.find((id, i) => ids.indexOf(id) < i)
  if (twice !== undefined)
    throw new EngineError(
      'USAGE',
      `Two applications have the id ${twice}: give each its own, for it names the group and the topics of its state.`,
    )
  const unknown = Object.keys(applications).find((id) => !ids.includes(id))
  if (unknown !== undefined)
    throw new EngineError(
      'USAGE',
      `Options are given for ${unknown}, which is none of the applications ${ids.join(', ')}.`,
    )
}
