/**
 * Whether the stores of the application and their changelogs go with what the last commit remembers of them. Nothing is
 * opened, made or replayed before that is known: over a changelog that begins anew behind the group's offsets every
 * result would be wrong, and rows of another form would be misread.
 */
import type { BrokerPort, CommittedOffset } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'
import { diffTopologies, type Difference } from '../../topology/changes/diff.ts'
import type { StorePlan } from '../../topology/plan.ts'
import { generatedName } from '../../topology/changes/surroundings.ts'
import { endsIn, type KnownEnds } from '../commit/changelog-ends.ts'
import { decodeMarks, digestOf, digitsOf, encodeMarks, type StoreMark } from '../commit/state-marks.ts'
import { type CommitTag, compareTags, decodeTag } from '../commit/tag.ts'
import type { StoreReplay } from './store-replay.ts'
import { allPartitions } from '../group/assignment.ts'
import { lostBetween } from '../group/lost-between.ts'
import { isMadeAnew } from '../group/made-anew.ts'
import { countSince } from '../group/partition-counts.ts'
import { changedStores } from './changed-stores.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { EngineSettings } from '../settings.ts'

export interface CheckedState {
  /** For the commits to come. */
  readonly marks: string
  /** Stores whose changelog is not the topic that the last commit went to; none where that is refused. */
  readonly lost: ReadonlySet<string>
  /** Topics between sub-topologies that are not those of the last commit; none where that is refused. */
  readonly between: readonly string[]
  /** How far the changelogs went. */
  readonly ends: KnownEnds
  /** What the application has changed of its stores and results rest on, for the log. */
  readonly warnings: readonly string[]
}

/** What the commits of this application are to remember from now on. */
export async function checkedState(
  settings: EngineSettings,
  broker: BrokerPort,
  topics: ResolvedTopics,
): Promise<CheckedState> {
  const { marks: before, ends, committed } = await remembered(settings, broker, topics)
  const now = marksOf(settings, topics)
  refuseOtherForms(settings, before, now)
  const lost = lostChangelogs(settings, topics, before)
  refuseOtherShares(settings, topics, committed, before, lost)
  const between = lostBetween(settings, topics, committed)
  const warnings = await changedStores(settings, broker, topics, committed, before)
  const names = new Set(now.map(({ name }) => name))
  const gone = before.filter(({ name }) => !names.has(name)).map((mark) => ({ ...mark, gone: true }))
  return { marks: encodeMarks([...now, ...gone]), lost, between, ends, warnings }
}

interface Remembered {
  readonly marks: readonly StoreMark[]
  readonly ends: KnownEnds
  readonly committed: readonly CommittedOffset[]
}

/** What the newest commit remembers; nothing where no commit has said so yet. */
async function remembered(settings: EngineSettings, broker: BrokerPort, topics: ResolvedTopics): Promise<Remembered> {
  const partitions = allPartitions(settings, topics)
  // Without a store it is asked as well: a version that has stores again is to find those that this one leaves out.
  if (partitions.length === 0) return { marks: [], ends: new Map(), committed: [] }
  // Those of other processes too: one partition of each of them has it.
  const committed = await broker.committedOffsets(settings.applicationId, partitions, false)
  let newest: CommitTag | undefined
  for (const { metadata } of committed) {
    const tag = decodeTag(metadata)
    if (tag?.stores !== undefined && (!newest || compareTags(tag, newest) > 0)) newest = tag
  }
  return { marks: newest?.stores === undefined ? [] : decodeMarks(newest.stores), ends: endsIn(committed), committed }
}

function marksOf({ plan }: EngineSettings, { changelogs }: ResolvedTopics): StoreMark[] {
  return plan.stores.map((store) => ({
    ...formOf(store),
    shares: changelogs.get(store.name)?.partitions ?? 1,
    changelog: store.changelogTopic === undefined ? digestOf(changelogs.get(store.name)?.topicId ?? '') : '',
  }))
}

function formOf(store: StorePlan): Omit<StoreMark, 'changelog' | 'shares'> {
  const {
    name,
    kind,
    keySerde,
    valueSerde,
    timestamped,
    windowSizeMs,
    windowAdvanceMs,
    changelogTopic,
    holds,
    around,
  } = store
  return {
    name,
    kind,
    keySerde,
    valueSerde,
    timestamped,
    ...(holds !== undefined && { holds }),
    ...(around !== undefined && { around: digitsOf(around) }),
    ...(windowSizeMs !== undefined && { windowSizeMs }),
    ...(windowAdvanceMs !== undefined && { windowAdvanceMs }),
    ...(changelogTopic !== undefined && { changelogTopic }),
  }
}

/** What `millrace topology --diff` calls breaks; a store with a name of its own may give way to another one. */
function refuseOtherForms(settings: EngineSettings, before: readonly StoreMark[], now: readonly StoreMark[]): void {
  const names = new Set(now.map(({ name }) => name))
  const state = (marks: readonly StoreMark[]) => ({
    stores: marks.map((mark) => ({ ...mark, subtopology: 0 })),
    sources: [],
    repartitions: [],
  })
  // One that has been left out once and is there again has the rows that it had.
  const old = before.filter(({ name, gone }) => names.has(name) || (!gone && generatedName.test(name)))
  const breaks = diffTopologies(state(old), state(now)).filter(({ level }) => level === 'breaks')
  if (breaks.length === 0) return
  const sentences = breaks.map(({ what }: Difference) => what).join('; ')
  throw new EngineError(
    'STATE_CHANGED',
    `The application ${settings.applicationId} does not fit the state that it committed: ${sentences}. ` +
      'Nothing was read or changed; the application as it was goes on from there.',
  )
}

function lostChangelogs(
  settings: EngineSettings,
  { changelogs }: ResolvedTopics,
  before: readonly StoreMark[],
): ReadonlySet<string> {
  const lost = new Set<string>()
  for (const { name, changelog } of before) {
    const info = changelogs.get(name)
    if (info === undefined || changelog === '' || changelog === digestOf(info.topicId)) continue
    // A standby follows changelogs; to write one is for a process that has the store for itself.
    if (settings.lostChangelogs === 'refuse' || (settings.lostChangelogs === 'write-anew' && settings.ha)) {
      const what = 'is not the topic that the last commit went to: that one was deleted'
      throw changelogLost(settings, name, what, info.topic)
    }
    lost.add(name)
  }
  return lost
}

/** A key is looked for by the number of partitions that there are now, and lies where that of before has put it. */
function refuseOtherShares(
  settings: EngineSettings,
  { topics, changelogs }: ResolvedTopics,
  committed: readonly CommittedOffset[],
  before: readonly StoreMark[],
  lost: ReadonlySet<string>,
): void {
  for (const { name, shares, changelogTopic } of before) {
    const info = changelogs.get(name)
    if (info === undefined || shares === undefined || shares === info.partitions) continue
    // Nothing is left of its rows, so nothing lies anywhere.
    if (lost.has(name) && settings.lostChangelogs === 'accept') continue
    if (changelogTopic !== undefined && isMadeAnew(info.topic, committed, topics)) continue
    throw countSince(name, shares, info)
  }
}

/**
 * Where records of a changelog are gone that are needed. Nothing takes away the end of a topic. Of windows, sessions and rows
 * that expire it may well have lost the old ones, and a source topic that serves as changelog has its own rules.
 */
export function refuseLost(settings: EngineSettings, stores: readonly StoreReplay[]): void {
  if (settings.lostChangelogs === 'accept') return
  for (const { store, partition, topic, lost, lostTail } of stores) {
    const plan = settings.plan.stores.find(({ name }) => name === store)
    if (lostTail !== undefined)
      throw changelogLost(settings, store, `(partition ${partition}) ${lostTail}`, topic, true)
    if (lost === undefined || plan === undefined || plan.changelogTopic !== undefined) continue
    if (plan.kind !== 'key-value' || plan.ttlMs !== undefined) continue
    throw changelogLost(settings, store, `(partition ${partition}) ${lost}`, topic, true)
  }
}

/** Says what is lost, and the ways out. */
export function changelogLost(
  { applicationId, durableStores }: Pick<EngineSettings, 'applicationId' | 'durableStores'>,
  store: string,
  what: string,
  topic: string,
  isCut = false,
): EngineError {
  const anew = `${isCut ? 'with the topic deleted, ' : ''}\`engine.state.lost-changelogs: write-anew\` writes it from the store on disk; `
  const disk = durableStores ? ' What the store has on disk is untouched.' : ''
  return new EngineError(
    'CHANGELOG_LOST',
    `The changelog ${topic} of the store ${store} ${what}. Over it the store would go on without what ${applicationId} ` +
      `committed, and every result that rests on it would be wrong.${disk} ` +
      `Ways out: bring the topic back; ${durableStores ? anew : ''}` +
      `or begin anew, with the group ${applicationId} and its changelogs deleted` +
      `${durableStores ? ' and the state folder emptied' : ''}; \`engine.state.lost-changelogs: accept\` goes on with what is there.`,
  )
}
