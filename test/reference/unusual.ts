/** Settings that change no result, with values that few users give them. Some are drawn for each run. */
import type { Random } from '../../src/base/random.ts'
import type { Program } from './program.ts'

type Values = readonly (string | number)[]
type Drawn = Record<string, string | number>

const limits: Readonly<Record<string, Values>> = {
  'lane.max-in-flight': [1, 7],
  'lane.queue-bytes': [65_536],
  'lane.uncommitted-max-bytes': [1_048_576],
  'commit-barrier.idle-interval-ms': [1, 3_600_000],
  'engine.state.write-buffer-bytes': [0, 100_000],
  'engine.state.write-interval-ms': [1],
  'engine.emit.max-dirty-rows': [1],
}

/** With these, inputs that have nothing to do with one another are no longer read in step. */
const limitsOfInput: Readonly<Record<string, Values>> = {
  'engine.processing.buffered-records-per-partition': [1, 7],
  'engine.processing.buffered-max-bytes': [262_144],
  'consumer.max.poll.records': [1, 33],
  'consumer.fetch.max.wait.ms': [0, 7],
  'consumer.fetch.max.bytes': [1024],
  'consumer.max.partition.fetch.bytes': [1024],
}

/** What the application itself sets: the same in all of its lives. */
const ofTheApplication: Readonly<Record<string, Values>> = {
  'engine.processing.guarantee': ['at-least-once'],
  'engine.processing.max-task-idle-ms': [20],
}

const share = 0.2

function drawn(random: Random, settings: Readonly<Record<string, Values>>): Drawn {
  const chosen = Object.entries(settings).filter(() => random.chance(share))
  return Object.fromEntries(chosen.map(([key, values]) => [key, random.pick([...values])]))
}

/** What it tells within its limit hangs on how far all other inputs are by then. */
const hangsOnOthers = ({ nodes }: Program): boolean =>
  nodes.some(({ op, until }) => op === 'suppress' && until === 'timeLimit')

/** Of one life of a process; another has others. */
export function unusualLimits(random: Random, program: Program): Drawn {
  const ofInput = drawn(random, limitsOfInput)
  return { ...drawn(random, limits), ...(!hangsOnOthers(program) && ofInput) }
}

/** Of an application that nothing kills: with at-least-once a crash tells some results twice. */
export const unusualSettings = (random: Random, program: Program): Drawn => ({
  ...unusualLimits(random, program),
  ...drawn(random, ofTheApplication),
})
