/** Failures: of the run at hand, of runs before it, and restarts in place. */
import type { EarlierFailure, Facts } from '../facts.ts'
import type { Found } from '../finding.ts'
import { everythingBehind, hourMs, isMeantToRun, type StandstillRow } from '../row.ts'
import { failureAdvice, isInMemory, setting, toRead, withoutAdvice } from '../wording/advice.ts'
import { causeAdvice } from '../wording/cause-advice.ts'
import { clockTime, lasting, plainly, recordName } from '../words.ts'

/** A restart that has not ended after so long has a finding. */
const patienceMs = 5000

/** Failures of the last hour at this very record, this one included. */
function attemptsAt(facts: Facts, record: EarlierFailure['record'], now: number): readonly EarlierFailure[] {
  return facts.earlier.filter((failure) => {
    const { record: at, atMs } = failure
    if (now - atMs > hourMs || at === undefined || record === undefined) return false
    return at.topic === record.topic && at.partition === record.partition && at.offset === record.offset
  })
}

function isPassed({ partitions }: Facts, record: NonNullable<EarlierFailure['record']>): boolean {
  const { topic, partition, offset } = record
  const here = partitions.find((each) => each.topic === topic && each.partition === partition)
  return here !== undefined && here.committedOffset !== null && here.committedOffset > offset
}

/** Failures at a place of a topic where there is no record to be read, or no topic. */
const withoutRecord: ReadonlySet<string | undefined> = new Set(['TOPIC_MISSING', 'OFFSETS_MISSING'])

const poisonRecord: StandstillRow = {
  code: 'POISON_RECORD',
  severity: 'FAILED',
  title: 'A record that cannot be processed',
  when: 'The engine failed at a record; or it did within the hour before this start of the process, and nothing behind that record is committed yet.',
  explains: ['FAILED', ...everythingBehind],
  next: 'A restart alone does not help: the same record fails again. If it began with a new release, roll that back first. Otherwise the developers have to correct the function, or the owners of the topic what they write. To go on before that, `dead-letter` for `errors.processing`, `errors.decoding` or `errors.producing` sets the record aside in a topic, and from then on every record that fails; `skip` drops them for good. Then start the process.',
  guide:
    'What the process failed of before is kept in the folder of its stores, so that it is also told where a supervisor starts the process again and again. With stores in memory there is no such folder: then only the failure of the process that answers is known.',
  find: (facts, now) => {
    const current = facts.failure?.record
    const last = facts.earlier[0]
    const record = current ?? last?.record
    if (record === undefined || (facts.failure !== null && current === undefined)) return []
    const before = attemptsAt(facts, record, now)
    if (current === undefined && (before.length === 0 || isPassed(facts, record))) return []
    const code = current === undefined ? last?.code : facts.failure?.code
    if (withoutRecord.has(code)) return []
    const message = (current === undefined ? last?.message : facts.failure?.message) ?? ''
    const sinceMs = Math.min(facts.failure === null ? now : facts.stateSinceMs, ...before.map(({ atMs }) => atMs))
    const again =
      before.length > 1
        ? ` ${before.length} attempts of the last hour ended at this record, the first at ${clockTime(sinceMs)}: the engine, or the process, was started again after each.`
        : ''
    const running =
      current === undefined
        ? ` The process was started again, which makes this attempt ${before.length + 1}. It has not yet got past that record.`
        : ' This process processes nothing any more.'
    return [
      {
        sentence: `One record cannot be processed, ${recordName(record)}: ${message.replace(/\.?$/, '.')}${again}${running}`,
        next: poisonNext(facts, code, record),
        sinceMs,
        place: { ...record },
        evidence: [
          { at: '/state', field: 'failure', value: current === undefined ? null : (facts.failure?.code ?? null) },
        ],
        severity: current === undefined ? 'STANDING' : 'FAILED',
      },
    ]
  },
}

/** The setting that decides on such a failure, and whose work it is. */
const policies = {
  PROCESSING_FAILED: {
    key: 'processing',
    release: 'a new release',
    cure: 'the developers have to correct the function; give them this text.',
  },
  DECODE_FAILED: {
    key: 'decoding',
    release: 'a new release of this application or of what writes the topic',
    cure: 'the owners of the topic have to correct what they write.',
  },
  PRODUCE_FAILED: {
    key: 'producing',
    release: 'a new release',
    cure: 'the developers have to correct what the application writes.',
  },
} as const

function poisonNext(facts: Facts, code: string | undefined, record: NonNullable<EarlierFailure['record']>) {
  const policy = policies[code as keyof typeof policies]
  if (policy === undefined) return `${poisonRecord.next} ${toRead(facts, record)}`.trimEnd()
  const { key, release, cure } = policy
  const topic = facts.settings?.deadLetterTopic
  const where = topic === undefined ? 'a topic' : `the topic ${topic}`
  const set = setting(`errors.${key}`, facts.settings?.[key])
  const isLost = isInMemory(facts.broker.address)
  const first = isLost
    ? `Give them this text. If it began with ${release}, they may roll that back, which is a restart too.`
    : `A restart alone does not help: the same record fails again. If it began with ${release}, roll that back first.`
  const correct = isLost ? cure.replace('; give them this text', '') : cure
  return `${first} Otherwise ${correct} ${toRead(facts, record)}To go on before that,${isLost ? ' with their word,' : ''} set ${set} to \`dead-letter\` and start the process again: ${isLost ? 'its topics are empty then, and' : 'this record, and'} from then on every ${isLost ? 'record' : 'one'} that fails${isLost ? '' : ','} is set aside in ${where}, which the engine creates. (\`skip\` drops them for good.)`
}

const failed: StandstillRow = {
  code: 'FAILED',
  severity: 'FAILED',
  title: 'The engine has failed',
  when: 'The state of the process is FAILED (GET `/state`): it processes nothing any more, and does not begin again by itself.',
  explains: ['RESTARTS', ...everythingBehind],
  next: 'Do what belongs to the code that the sentence names (docs/errors.md); then start the process again.',
  nextBehind: 'Start this process again only if that advice says so.',
  find: (facts) => {
    const { state, failure, stateSinceMs } = facts
    if (state !== 'FAILED') return []
    const { code, message, restartHelps } = failure ?? {
      code: 'UNKNOWN',
      message: 'the reason is not known',
      restartHelps: false,
    }
    return [
      {
        sentence: `The engine of this process has given up, with the error ${code}: ${plainly(message).replace(/\.?$/, '.')}`,
        sinceMs: stateSinceMs,
        place: { ...failure?.record },
        evidence: [{ at: '/state', field: 'failure.code', value: code }],
        next: lastCause(code, facts) ?? failureAdvice(code, restartHelps, facts),
      },
    ]
  },
}

/** What brought the last of too many restarts about, where that is known. */
function lastCause(code: string, facts: Facts): string | undefined {
  const { causes = [], codes = [] } = facts.commit?.restarts ?? {}
  if (code !== 'RESTARTS_EXHAUSTED' || causes[0] === undefined || codes[0] === undefined) return undefined
  return `${causeAdvice(causes.slice(0, 1), codes, facts)} The log and \`/debug/barriers\` have the causes before it. Then start the process again.`
}

/** They come with the newest first. */
function causesOf(causes: readonly string[]): string {
  const newest = causes.slice(0, 3).map((cause) => plainly(withoutAdvice(cause)))
  if (newest.length === 0) return ''
  if (newest.length === 1) return ` The cause: ${newest[0]}.`
  return ` The causes, the newest first: ${newest.map((cause, i) => `(${i + 1}) ${cause}`).join('. ')}.`
}

const restarts: StandstillRow = {
  code: 'RESTARTS',
  severity: 'STANDING',
  title: 'The engine restarts again and again',
  when: 'There were two restarts in place or more within the time over which they are counted (`commit-barrier.restart-window-ms`), or one has been under way for 5 s.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'ALIGNMENT_HELD', 'COMMITS_SLOW'],
  next: 'Remove the causes that the sentence names, (1) first: it is the newest. By itself the engine goes on until the restarts are used up; then it fails, or a standby takes over.',
  find: (facts, now): Found[] => {
    const { commit, state, stateSinceMs } = facts
    if (commit === null || !isMeantToRun(facts)) return []
    const { used, max, windowMs, causes, codes } = commit.restarts
    const underWay = state === 'RESTARTING' && now - stateSinceMs >= patienceMs
    if (used < 2 && !underWay) return []
    const how = underWay
      ? `The engine has been restarting in place for ${lasting(now - stateSinceMs)}; until that is done nothing is processed.`
      : 'The engine restarts in place again and again.'
    return [
      {
        ...(codes !== undefined && codes.length > 0 && { next: restartsNext(facts, causes, codes, windowMs) }),
        sentence: `${how} ${used} of the ${max} restarts that are allowed within ${lasting(windowMs)} ${used === 1 ? 'is' : 'are'} used.${causesOf(causes)}`,
        sinceMs: commit.restartsSinceMs ?? stateSinceMs,
        place: {},
        evidence: [{ at: '/debug/barriers', field: 'restarts.used', value: used }],
        severity: underWay ? 'STANDING' : 'SLOW',
      },
    ]
  },
}

function restartsNext(facts: Facts, causes: readonly string[], codes: readonly string[], windowMs: number): string {
  const what = causeAdvice(causes, codes, facts)
  return `${what} By itself the engine goes on until the restarts are used up; then it fails, or a standby takes over. A restart no longer counts when it is ${lasting(windowMs)} old.`
}

export const failureRows: readonly StandstillRow[] = [poisonRecord]
export const lateRows: readonly StandstillRow[] = [restarts, failed]
