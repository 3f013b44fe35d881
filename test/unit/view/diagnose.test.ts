/** The table of standstills, over facts that are made up: causes before effects, and nothing without lasting evidence. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { renderStandstills, standstillsPage } from '../../../scripts/docs-standstills.ts'
import { answerOf, answerText } from '../../../src/view/diagnosis/answer.ts'
import { diagnose, verdictOf } from '../../../src/view/diagnosis/diagnose.ts'
import type { CommitFacts, Facts, LaneFacts, PartitionFacts } from '../../../src/view/diagnosis/facts.ts'
import { standstillTable } from '../../../src/view/diagnosis/table.ts'
import { codesOf, healthy, lane, now, partition } from './facts.ts'

describe('the table of standstills', () => {
  test('names each code once, and explains only codes that it has', () => {
    const codes = standstillTable.map(({ code }) => code)
    assert.equal(new Set(codes).size, codes.length)
    for (const { code, explains } of standstillTable) {
      assert.deepEqual(
        explains.filter((each) => !codes.includes(each)),
        [],
        code,
      )
    }
  })

  test('never explains in a circle', () => {
    const explains = new Map(standstillTable.map((row) => [row.code, row.explains]))
    for (const { code } of standstillTable) {
      const reached = new Set(explains.get(code))
      for (const each of reached) for (const next of explains.get(each) ?? []) reached.add(next)
      assert.ok(!reached.has(code), `${code} explains itself`)
    }
  })

  test('is what the page of the guide says; `node scripts/docs-standstills.ts` renews it', () => {
    assert.equal(readFileSync(standstillsPage, 'utf8'), `${renderStandstills().trimEnd()}\n`)
  })

  test('uses no word that only those who know the engine understand', () => {
    const text = standstillTable.map(({ title, when, next, guide }) => [title, when, next, guide].join(' ')).join(' ')
    assert.doesNotMatch(text.replaceAll(/commit-barrier\.\S+/g, ''), /\b(barrier|acks?|epoch|dispatch\w*|drains?)\b/i)
  })
})

describe('a diagnosis', () => {
  test('finds nothing where all is well', () => {
    assert.deepEqual(codesOf({}), [])
    assert.equal(verdictOf(healthy, [], []).status, 'FLOWING')
  })

  test('tells a silent engine from a process that was not let run', () => {
    assert.deepEqual(codesOf({ engineSilentMs: 4900 }), [])
    assert.deepEqual(codesOf({ engineSilentMs: 5100 }), ['ENGINE_SILENT'])
    // The whole process stood still, or had a processor now and then.
    assert.deepEqual(codesOf({ engineSilentMs: 30_000, missedMs: 29_000, lateMs: 700 }), [])
    assert.deepEqual(codesOf({ engineSilentMs: 9000, missedMs: 3000, lateMs: 200 }), [])
    // Looked at often enough, it is silent all the same.
    assert.deepEqual(codesOf({ engineSilentMs: 20_000, missedMs: 9000, lateMs: 200 }), ['ENGINE_SILENT'])
  })

  test('names the broker that is gone, and none that was not asked yet', () => {
    const node = { id: 2, address: 'kafka-2:9092', connected: false, sinceMs: now - 9000, lastError: null, calls: [] }
    const gone = (nodes: Facts['broker']['nodes'], more: Partial<Facts> = {}): Partial<Facts> => ({
      ...more,
      broker: { ...healthy.broker, connected: false, sinceMs: now - 9000, nodes },
    })
    // A process that starts on a busy machine has not asked anybody yet, or has asked a moment ago.
    const call = { kind: 'other', what: 'describing the cluster', sinceMs: now - 1000 } as const
    assert.deepEqual(codesOf(gone([node])), [])
    assert.deepEqual(codesOf(gone([{ ...node, calls: [call] }])), [])
    const silent = { ...node, calls: [{ ...call, sinceMs: now - 8000 }] }
    assert.deepEqual(codesOf(gone([silent])), ['BROKER_GONE'])
    assert.deepEqual(codesOf(gone([silent], { lateMs: 400 })), [])
    const refused = { ...node, lastError: 'connection refused' }
    const [first] = diagnose(now, { ...healthy, ...gone([{ ...node, id: 1, connected: true }, refused]) })
    assert.match(
      first?.sentence ?? '',
      /^The broker 2 at kafka-2:9092 has not answered for 9 s\. The last error: connection refused\./,
    )
    assert.deepEqual(first?.place, { broker: 'kafka-2:9092' })
  })

  test('names the broker that stands still, though its connection is up', () => {
    const fetching = (ageMs: number) => {
      const call = { kind: 'fetch', what: 'fetching', sinceMs: now - ageMs } as const
      return { id: 2, address: 'kafka-2:9092', connected: true, sinceMs: 0, lastError: null, calls: [call] }
    }
    const among = (ageMs: number, more: Partial<Facts> = {}): Facts => ({
      ...healthy,
      ...more,
      broker: { ...healthy.broker, nodes: [{ ...fetching(100), id: 1 }, fetching(ageMs)] },
    })
    const settings = { fetchMaxWaitMs: 2000 } as NonNullable<Facts['settings']>
    assert.deepEqual(codesOf(among(6900, { settings })), [])
    assert.deepEqual(codesOf(among(20_000, { settings, state: 'FAILED' })).includes('BROKER_GONE'), false)
    const failure = { code: 'PROCESSING_FAILED', message: 'A function failed' } as NonNullable<Facts['failure']>
    assert.deepEqual(codesOf(among(20_000, { settings, state: 'STOPPING', failure })).includes('BROKER_GONE'), false)
    assert.ok(codesOf(among(20_000, { settings, state: 'STOPPING' })).includes('BROKER_GONE'))
    const [first] = diagnose(now, among(7000, { settings }))
    assert.equal(first?.code, 'BROKER_GONE')
    assert.match(
      first.sentence,
      /^The broker 2 at kafka-2:9092 has not answered a fetch for 7 s, though the connection is up/,
    )
    assert.deepEqual([first.place, first.sinceMs], [{ broker: 'kafka-2:9092' }, now - 7000])
  })

  test('names the broker that owes the answer to a commit', () => {
    const call = { kind: 'transaction', what: 'committing the transaction of app', sinceMs: now - 7000 } as const
    const node = { id: 3, address: 'kafka-3:9092', connected: true, sinceMs: 0, lastError: null, calls: [call] }
    const commit = { ...healthy.commit, phase: 'IN_TX_COMMIT', phaseSinceMs: now - 7000 } as Facts['commit']
    const [first] = diagnose(now, { ...healthy, commit, broker: { ...healthy.broker, nodes: [node] } })
    assert.equal(first?.code, 'COMMIT_UNANSWERED')
    assert.match(
      first?.sentence ?? '',
      /^The broker 3 at kafka-3:9092 has not answered for 7 s\. .+ end the transaction .+\(committing the/,
    )
    assert.deepEqual(first?.place, { broker: 'kafka-3:9092' })
  })

  test('tells a step that goes on from one that always takes so long', () => {
    const at = (ageMs: number, longestStepMs: number): LaneFacts => ({
      ...lane,
      stepSinceMs: now - ageMs,
      longestStepMs,
    })
    assert.deepEqual(codesOf({ lanes: [at(5000, 0)] }), [])
    assert.deepEqual(codesOf({ lanes: [at(7000, 0)] }), ['LANE_DOES_NOT_RETURN'])
    assert.deepEqual(codesOf({ lanes: [at(7000, 5000)] }), [])
    assert.deepEqual(codesOf({ lanes: [at(11_000, 5000)] }), ['LANE_DOES_NOT_RETURN'])
  })

  test('stays below 64 KiB where every lane has a finding, whatever topics are called', () => {
    const topic = 't'.repeat(249)
    const hotKey = { hash: '0badcafe', waiting: 1500, node: 'work', topic, partition: 0, sinceMs: now - 30_000 }
    const lanes = Array.from({ length: 64 }, (_, i) => {
      return { ...lane, lane: `lane-${i}`, rate: 2, busySinceMs: now - 30_000, callMs: 400, hotKey }
    })
    const partitions = Array.from({ length: 500 }, (_, i) => {
      return { ...partition, topic, partition: i, lag: 5000, withheld: 100, withheldSinceMs: now - 30_000 }
    })
    const facts = { ...healthy, lanes, partitions }
    const findings = diagnose(now, facts)
    assert.equal(findings.filter(({ code }) => code === 'HOT_KEY').length, lanes.length)
    const flow = lanes.map((each) => {
      return { stage: each.lane, busy: 0.25, idle: 0.25, held: 0.25, waiting: 0.25, by: 'HOT_KEY', place: each.lane }
    })
    const answer = answerOf(verdictOf(facts, findings, flow))
    const bytes = JSON.stringify(answer).length
    assert.ok(bytes < 65_536, `${bytes} bytes`)
    assert.ok(answer.findings.length > 10)
    assert.deepEqual(
      answer.findings.map(({ sentence }) => sentence),
      findings.slice(0, answer.findings.length).map(({ sentence }) => sentence),
    )
  })

  test('says where the call that has not ended is to be seen', () => {
    const at = { topic: 'in', partition: 0, offset: 42 }
    const calling = { ...lane, lane: 'lane-1', node: null, call: { sinceMs: now - 20_000, node: 'ask', at } }
    const [first] = diagnose(now, { ...healthy, lanes: [lane, calling] })
    assert.equal(first?.code, 'PROMISE_PENDING')
    assert.deepEqual(first?.evidence, [{ at: '/debug/barriers', field: 'lanes[1].at.offset', value: 42 }])
  })

  test('tells a record that waits for its schema from a call of the application', () => {
    const at = { topic: 'in', partition: 0, offset: 42 }
    const waiting = { ...lane, node: null, call: { sinceMs: now - 20_000, node: null, at } }
    const trouble = 'it cannot be reached: connect ECONNREFUSED'
    const schemas = { registry: 'http://registry:8081', ids: [7], trouble, giveUpAfterMs: 100_000 }
    const [first] = diagnose(now, { ...healthy, lanes: [waiting], schemas })
    assert.equal(first?.code, 'PROMISE_PENDING')
    assert.match(
      first?.sentence ?? '',
      /has waited in lane-0 for 20 s, at the record in\/0 at offset 42: .* the schema 7, which the schema registry http:\/\/registry:8081 does not give: it cannot be reached/,
    )
    assert.match(first?.next ?? '', /^Check the schema registry/)
    assert.doesNotMatch(first?.next ?? '', /fetch\(url|database/)
    const inStep = { ...lane, node: null, call: { sinceMs: now - 20_000, node: 'ask', at } }
    assert.match(diagnose(now, { ...healthy, lanes: [inStep], schemas })[0]?.sentence ?? '', /the step ask made/)
  })

  test('puts a full buffer, restarts and slow commits behind the lane that brings them about', () => {
    const commit = { ...healthy.commit, restarts: { used: 2, max: 3, windowMs: 300_000, causes: ['BARRIER_TIMEOUT'] } }
    const facts = {
      lanes: [{ ...lane, stepSinceMs: now - 20_000 }],
      partitions: [{ ...partition, buffered: 1000, fullSinceMs: now - 9000, lag: 5000 }],
      commit: commit as Facts['commit'],
    }
    assert.deepEqual(codesOf(facts), ['LANE_DOES_NOT_RETURN', '(RESTARTS)', '(BUFFER_FULL)'])
    const [first] = diagnose(now, { ...healthy, ...facts })
    assert.deepEqual(first?.leadsTo, ['RESTARTS', 'BUFFER_FULL'])
    const [, restarts, full] = diagnose(now, { ...healthy, ...facts })
    for (const effect of [restarts, full]) {
      assert.match(effect?.next ?? '', /^This follows from LANE_DOES_NOT_RETURN above: follow the advice there\. /)
    }
    assert.deepEqual(codesOf({ ...facts, lanes: healthy.lanes, commit: healthy.commit }), [], 'full load is no finding')
  })

  test('gives two causes that have nothing to do with one another, each with its sentence', () => {
    const hotKey = { hash: '0000abcd', waiting: 2, node: 'call', topic: 'in', partition: 0, sinceMs: now - 8000 }
    const facts = {
      ...healthy,
      lanes: [{ ...lane, hotKey, callMs: 400 }],
      partitions: [
        { ...partition, lag: 500, buffered: 500 },
        { ...partition, partition: 1, watermarkMs: null, quietSinceMs: now - 20_000 },
      ],
    }
    const findings = diagnose(now, facts)
    assert.deepEqual(
      findings.map(({ code, explained }) => [code, explained]),
      [
        ['WATERMARK_HELD', false],
        ['HOT_KEY', false],
      ],
    )
    const { verdict } = verdictOf(facts, findings, [])
    for (const { sentence } of findings) assert.ok(verdict.includes(sentence))
  })

  test('leaves a quiet night alone, and an application without event time', () => {
    const asleep = { ...partition, quietSinceMs: now - 3_600_000 }
    const behind = { ...asleep, partition: 1, watermarkMs: now - 7_200_000 }
    assert.deepEqual(codesOf({ partitions: [asleep, behind] }), [])
    const fedToTheEnd = { ...partition, quietSinceMs: now - 20_000 }
    const endedBefore = { ...fedToTheEnd, partition: 1, watermarkMs: now - 7_200_000, quietSinceMs: now - 22_000 }
    assert.deepEqual(codesOf({ partitions: [fedToTheEnd, endedBefore] }), [], 'all that was fed has come')
    const never = { ...partition, partition: 2, watermarkMs: null, quietSinceMs: now - 60_000 }
    assert.deepEqual(codesOf({ partitions: [partition, never] }), ['WATERMARK_HELD'])
    assert.deepEqual(codesOf({ partitions: [partition, never], usesEventTime: false }), [])
    const once = [fedToTheEnd, endedBefore, never]
    assert.deepEqual(codesOf({ partitions: once }), ['WATERMARK_HELD'], 'what was fed gives no results')
    const [{ place, sentence } = { place: {}, sentence: '' }] = diagnose(now, { ...healthy, partitions: once })
    assert.equal(place.partition, 2)
    assert.match(sentence, /has not begun/)
  })

  test('does not wonder that a partition is not idle which was read to its end a moment ago', () => {
    const idlenessTimeoutMs = 1000
    const behind = { ...partition, partition: 1, idlenessTimeoutMs, watermarkMs: now - 7_200_000 }
    const quiet = (quietMs: number, doneMs: number) => {
      return { ...behind, quietSinceMs: now - quietMs, doneSinceMs: now - doneMs }
    }
    const codes = (each: PartitionFacts, lateMs = 0): string[] => codesOf({ partitions: [partition, each], lateMs })
    assert.deepEqual(codes(quiet(14_000, 3000)), [])
    assert.deepEqual(codes(quiet(14_000, 14_000)), ['WATERMARK_HELD'])
    assert.deepEqual(codes(quiet(14_000, 14_000), 900), [], 'nobody had a processor to ask for more')
    const never = { ...quiet(14_000, 3000), idlenessTimeoutMs: 0 }
    assert.deepEqual(codes(never), ['WATERMARK_HELD'])
  })

  test('tells a call that the engine has failed of once', () => {
    const at = { topic: 'in', partition: 0, offset: 42 }
    const calling = { ...lane, call: { sinceMs: now - 20_000, node: 'ask', at } }
    const failure = { code: 'PROCESSING_FAILED', message: 'it hung', record: at } as unknown as Facts['failure']
    assert.deepEqual(codesOf({ lanes: [calling], state: 'FAILED', failure }), ['POISON_RECORD', '(FAILED)'])
    const elsewhere = { ...calling, call: { ...calling.call, at: { ...at, offset: 41 } } }
    const failedAt = (stateSinceMs: number) =>
      codesOf({ lanes: [elsewhere], state: 'FAILED', stateSinceMs, failure }).includes('PROMISE_PENDING')
    assert.ok(failedAt(now - 1000))
    assert.ok(!failedAt(now - 17_000), 'it hung for 3 s only while somebody heard of it')
  })

  test('names no record where the topic is gone, or its records are', () => {
    const record = { topic: 'in', partition: 0, offset: 42 }
    for (const code of ['TOPIC_MISSING', 'OFFSETS_MISSING']) {
      const failure = { code, message: 'in:0 cannot be fetched', record } as unknown as Facts['failure']
      assert.deepEqual(codesOf({ state: 'FAILED', failure }), ['FAILED'])
      const earlier = [
        { code, message: 'in:0 cannot be fetched', record, atMs: now - 1000 },
      ] as unknown as Facts['earlier']
      const waiting = { ...partition, committedOffset: 42 }
      assert.equal(codesOf({ partitions: [waiting], earlier }).includes('POISON_RECORD'), false)
    }
  })

  test('takes no transaction of its own for that of somebody else', () => {
    const held = { ...partition, isAnnounced: true, withheld: 5, withheldSinceMs: now - 8000 }
    const writing = { ...(healthy.commit as CommitFacts), phase: 'IN_TX_COMMIT', phaseSinceMs: now - 8000 } as const
    const codes = (each: PartitionFacts, more: Partial<Facts> = {}): string[] =>
      codesOf({ transactionalId: 'app-one', partitions: [each], ...more })
    const by = (transactionalId: string) => ({ ...held, withheldBy: { producerId: '7', transactionalId } })
    assert.deepEqual(codes(by('app-one')), [])
    assert.deepEqual(codes(held, { commit: writing }), ['COMMIT_UNANSWERED'], 'the broker has not told whose it is')
    assert.deepEqual(codes(held), ['TRANSACTION_OPEN'], 'nothing of its own is open')
    assert.deepEqual(codes({ ...held, isAnnounced: false }, { commit: writing }), [
      'COMMIT_UNANSWERED',
      'TRANSACTION_OPEN',
    ])
    assert.deepEqual(codes(by('app-two')), ['TRANSACTION_OPEN'])
    const [other] = diagnose(now, { ...healthy, transactionalId: 'app-one', partitions: [by('app-two')] })
    assert.match(other?.next ?? '', /^That is another process of this application: ask it first/)
    assert.match(other?.sentence ?? '', /^Another process of this application, with the transactional id /)
  })

  test('tells members that come and go without end from a rolling update', () => {
    const change = (ago: number, came: string[], went: Array<[string, number | null]>) => ({
      atMs: now - ago * 1000,
      came,
      went: went.map(([member, stayed]) => ({ member, stayedMs: stayed === null ? null : stayed * 1000 })),
    })
    const rolling = [
      change(2, ['new-c'], []),
      change(12, [], [['old-c', null]]),
      change(22, ['new-b'], []),
      change(32, [], [['old-b', 3600]]),
      change(42, ['new-a'], [['old-a', null]]),
    ]
    assert.deepEqual(codesOf({ groupChanges: rolling }), [])
    const restless = [3, 13, 23, 33].map((ago) => change(ago, [`next-${ago}`], [[`last-${ago}`, 10]]))
    assert.deepEqual(codesOf({ groupChanges: restless }), ['GROUP_UNSTEADY'])
    const settings = { sessionTimeoutMs: 45_000 } as NonNullable<Facts['settings']>
    const nextOf = (stayed: number): string => {
      const groupChanges = restless.map((each) => ({ ...each, went: [{ member: 'a', stayedMs: stayed * 1000 }] }))
      return diagnose(now, { ...healthy, settings, groupChanges })[0]?.next ?? ''
    }
    // Nobody is lost for silence before the session is over.
    assert.match(
      nextOf(10),
      /they left the group by themselves.* only after `consumer.session.timeout.ms` \(now 45 s\)/,
    )
    assert.match(nextOf(50), /silent for longer than `consumer.session.timeout.ms` \(now 45 s\)/)
    const over = restless.map(({ atMs, ...rest }) => ({ ...rest, atMs: atMs - 60_000 }))
    assert.deepEqual(codesOf({ groupChanges: over }), [])
  })

  test('tells two processes that take one identity from each other in turns from one that was replaced once', () => {
    const at = (ago: number) => ({ code: 'FENCED', message: 'another process has taken over', atMs: now - ago * 1000 })
    assert.deepEqual(codesOf({ earlier: [at(30)] }), [])
    assert.deepEqual(codesOf({ earlier: [at(30), at(90)] }), ['FENCED'])
    assert.deepEqual(codesOf({ earlier: [at(300), at(400)] }), [])
    const failure = { code: 'FENCED', message: 'another process has taken over', restartHelps: false }
    assert.deepEqual(codesOf({ state: 'FAILED', failure, earlier: [at(1)] }), ['FENCED', '(FAILED)'])
    // What was under way when it ended grows no older.
    const cut = { ...healthy.commit, phase: 'ABORTING', phaseSinceMs: now - 20_000 } as Facts['commit']
    const held = [{ ...partition, withheld: 3, withheldSinceMs: now - 20_000 }]
    const ended: Partial<Facts> = { state: 'FAILED', failure, earlier: [at(1)], commit: cut, partitions: held }
    assert.deepEqual(codesOf(ended), ['FENCED', '(FAILED)'])
    assert.deepEqual(codesOf({ ...ended, state: 'RUNNING', failure: null }), ['COMMIT_UNANSWERED', 'TRANSACTION_OPEN'])
    const [fenced, failed] = diagnose(now, { ...healthy, state: 'FAILED', failure, earlier: [at(1)] })
    assert.match(fenced?.next ?? '', /Else do not start this process again as it is/)
    assert.match(failed?.next ?? '', /^This follows from FENCED above/)
  })

  test('advises on a failure alone what belongs to its error, and whether a start helps', () => {
    const next = (code: string, restartHelps: boolean): string => {
      const failure = { code, message: 'it is so', restartHelps }
      return diagnose(now, { ...healthy, state: 'FAILED', failure })[0]?.next ?? ''
    }
    assert.match(
      next('OFFSETS_MISSING', false),
      /^Delete nothing, .+--describe --group app.+ only once they have decided\.$/,
    )
    assert.match(next('TOPIC_MISSING', false), /--describe --group .+give it the same one.+--partitions <number>/)
    assert.match(
      next('TOPIC_MISSING', false),
      /A changelog of this application \(app-…-changelog\) is not to be made by hand/,
    )
    assert.match(next('INVARIANT_BROKEN', true), /^Save the log .+ Then start the process again\.$/)
    assert.match(next('UNKNOWN', false), /start the process again\.$/)
  })

  test('advises on each cause of restarts by its code, and calls a lane as everything else does', () => {
    const causes = [
      'Kafka refused producing to out:3 with NOT_ENOUGH_REPLICAS: fewer in-sync replicas than required.',
      'lanes 1 did not reach the barrier in time; lane-1 has been in a function of work for 30 s',
    ]
    const codes = ['TRANSACTION_ABORTED', 'BARRIER_TIMEOUT']
    const restarts = { used: 2, max: 3, windowMs: 300_000, causes, codes }
    const commit = { ...(healthy.commit as CommitFacts), restarts }
    const [first] = diagnose(now, { ...healthy, commit })
    assert.equal(first?.code, 'RESTARTS')
    assert.match(first.sentence, /\(2\) lane-1 did not finish the records of a commit in time; lane-1 has been in/)
    assert.match(first.next, /^About \(1\): bring back the brokers .+--under-min-isr-partitions/)
    assert.match(first.next, /About \(2\): a call of the application took longer than `commit-barrier\.timeout-ms`/)
    const one = { ...restarts, causes: causes.slice(1), codes: codes.slice(1) }
    const [only] = diagnose(now, { ...healthy, commit: { ...commit, restarts: one } })
    assert.match(only?.next ?? '', /^A call of the application took longer than.+make the function quicker/)
    const answer =
      'lanes 1 did not reach the barrier in time; lane-1 has waited 30 s for the answer of a function of ask'
    const asked = { ...restarts, causes: [answer], codes: codes.slice(1) }
    const [waited] = diagnose(now, { ...healthy, commit: { ...commit, restarts: asked } })
    assert.match(
      waited?.next ?? '',
      /^A call of the application took longer than.+Check the system that this step calls/,
    )
  })

  test('says which way out of stores ahead of their offsets counts nothing twice, with its commands', () => {
    const failure = { code: 'STORE_AHEAD', message: 'it is ahead', restartHelps: false }
    const settings = { stateDir: '/state', stateFolder: '/state/app' } as NonNullable<Facts['settings']>
    const [first] = diagnose(now, { ...healthy, state: 'FAILED', failure, settings })
    assert.match(first?.next ?? '', /\(1\) The whole cluster was, .+ Do this in no other case/)
    assert.match(first?.next ?? '', /`mv \/state\/app \/state\/app\.old`.+Do this in no other case/)
    assert.match(first?.next ?? '', /--bootstrap-server broker:9092 --delete --group app`/)
  })

  test('tells a standby that hears of no active pod what may be the matter, and how it takes over', () => {
    const ha = { podId: 'b', role: 'STANDBY', state: 'READY_STANDBY', notReady: null, failoverPaused: null }
    const none = { ...ha, active: null, noneSinceMs: now - 90_000, others: [{ podId: 'a', state: 'LOST' }] }
    const of = (more: object) => diagnose(now, { ...healthy, state: 'STANDBY', ha: { ...none, ...more } })[0]
    const says = (more: object, text: RegExp) => assert.match(`${of(more)?.sentence} ${of(more)?.next}`, text)
    says({}, /Of these nothing is heard: a\. .+`millrace ha promote b --wait`/)
    assert.partialDeepStrictEqual(of({}), { code: 'NOBODY_ACTIVE', severity: 'STANDING', sinceMs: now - 90_000 })
    const moving = { noneSinceMs: now - 20_000 }
    assert.partialDeepStrictEqual(of(moving), { code: 'STANDBY', severity: 'NOT_MEANT_TO_RUN' }, 'it takes a moment')
    says(moving, / Wait for that first: /)
    says({}, /none has: do not wait any longer/)
    says({ failoverPaused: { pod: 'a', atMs: now, from: '::1' } }, /paused .+ pod a from .+ ::1.+`millrace ha resume/)
    says({ state: 'PROMOTING', notReady: 'it is' }, /It takes over at this moment.+Send no `millrace ha promote`/)
    const promoting = { podId: 'a', diskFull: false, heardMs: 700 }
    says({ promoting }, /pod a is about to become active: it said PROMOTING 1 s ago.+how much it has still to restore/)
    const waits = { promoting: { ...promoting, diskFull: true } }
    says(waits, /waits for room on its disk.+Make room on the disk of the pod a.+gives the role to a ready pod/)
    says(waits, /No other pod takes over by itself meanwhile\..+`millrace ha promote b --wait`/)
    const paused = { ...waits, failoverPaused: { pod: 'a', atMs: now, from: null } }
    assert.doesNotMatch(of(paused)?.next ?? '', /gives the role/)
    const diskFull = { sentence: 'The disk has no room', sinceMs: now }
    const behind = diagnose(now, { ...healthy, state: 'STANDBY', ha: { ...none, notReady: 'it' }, diskFull })[1]
    assert.match(behind?.sentence ?? '', /cannot take over before its disk has room/, 'it is told once')
    says({ notReady: 'it is behind' }, /promote b --wait`.+or add `--force`/)
    says({ active: { podId: 'a', state: 'ACTIVE', heardMs: 700 }, noneSinceMs: undefined }, /it said ACTIVE 1 s ago/)
  })

  test('advises on a license by what is wrong with it', () => {
    const next = (status: string, reason: string): string =>
      diagnose(now, { ...healthy, license: { status, counts: false, sinceMs: now, reason } })[0]?.next ?? ''
    assert.match(next('EXPIRED', 'The license is EXPIRED: it has expired.'), /get a renewed license/)
    const unreached = 'The license is EXPIRED: validations fail and the grace period is over.'
    assert.match(next('EXPIRED', unreached), /let this host reach the license server/)
    assert.match(next('REVOKED', ''), /taken this license back/)
    assert.match(next('INVALID', ''), /whole key on one line/)
  })

  test('names the function that a step calls where it has a name', () => {
    const call = { sinceMs: now - 9000, node: 'ask', nodeFunction: 'askCustoms', at: null }
    const [pending] = diagnose(now, { ...healthy, lanes: [{ ...lane, call }] })
    assert.match(pending?.sentence ?? '', /call that the step ask \(function askCustoms\) made in lane-0/)
    assert.equal(pending?.place.function, 'askCustoms')
    const slow = { ...lane, call: { ...call, sinceMs: now }, callMs: 2500, rate: 0.4, busySinceMs: now - 9000 }
    const [found] = diagnose(now, { ...healthy, lanes: [slow], partitions: [{ ...partition, lag: 500 }] })
    assert.match(found?.sentence ?? '', /A call of askCustoms, step ask, takes about 2\.5 s until it is answered\./)
  })

  test('names calls that fail and are made again, before what they hold up', () => {
    const at = { topic: 'in', partition: 0, offset: 7 }
    const failing = { calls: 1, sinceMs: now - 70_000, node: 'ask', nodeFunction: 'askCustoms', at }
    const busy = { ...lane, rate: 0, busySinceMs: now - 70_000, callMs: 3 }
    const partitions = [{ ...partition, lag: 500 }]
    assert.deepEqual(codesOf({ lanes: [{ ...busy, failing }], partitions }), ['CALLS_FAIL', '(LANE_SLOW)'])
    assert.deepEqual(codesOf({ lanes: [{ ...lane, failing: { ...failing, sinceMs: now - 5000 } }] }), [], 'it may pass')
    const [one] = diagnose(now, { ...healthy, lanes: [{ ...lane, failing }] })
    assert.match(
      one?.sentence ?? '',
      /^A call that the step ask \(function askCustoms\) made in lane-0 has failed again and again for 70 s, at the record in\/0 at offset 7\./,
    )
    assert.match(one?.next ?? '', /system that askCustoms calls.+--topic in --partition 0 --offset 7/)
    const [many] = diagnose(now, { ...healthy, lanes: [{ ...lane, failing: { ...failing, calls: 3 } }] })
    assert.match(many?.sentence ?? '', /^3 calls in lane-0 fail again and again\. The oldest was made by the step ask /)
  })

  test('does not call a lane that finishes nothing yet stuck, nor unstuck', () => {
    const still = { ...lane, rate: 0, stepSinceMs: now - 4000, longestStepMs: 3000, busySinceMs: now - 9000 }
    const partitions = [{ ...partition, lag: 500 }]
    const [found] = diagnose(now, { ...healthy, lanes: [still], partitions })
    assert.equal(found?.code, 'LANE_SLOW')
    assert.match(
      found?.sentence ?? '',
      /finished no record within the last seconds \(the longest call before took 3 s\)/,
    )
    assert.doesNotMatch(found?.sentence ?? '', /not stuck/)
    assert.deepEqual(
      codesOf({ lanes: [{ ...still, stepSinceMs: now - 6000 }], partitions }),
      ['LANE_DOES_NOT_RETURN'],
      'twice as long as ever before',
    )
  })

  test('says of a process that stops how long that may take, and what it costs to kill it', () => {
    const settings = { shutdownTimeoutMs: 25_000 } as NonNullable<Facts['settings']>
    const next = (state: 'STOPPING' | 'STOPPED', forMs = 5000): string =>
      diagnose(now, { ...healthy, state, settings, stateSinceMs: now - forMs })[0]?.next ?? ''
    assert.match(
      next('STOPPING', 60_000),
      /^It should have ended within .+ \(now 25 s\) and has not\. Save .+ end it by hand\..+kill -9.+loses no record/,
    )
    assert.match(next('STOPPING'), /at the latest after `runtime\.shutdown\.timeout` \(now 25 s\)\. If nobody meant/)
    assert.match(next('STOPPED'), /ends in a moment\. If nobody meant it to stop/)
  })

  test('knows that an embedded broker has no machine of its own', () => {
    const commit = { ...healthy.commit, phase: 'IN_TX_COMMIT', phaseSinceMs: now - 7000 } as Facts['commit']
    const broker = { ...healthy.broker, address: 'embedded:/data/broker', nodes: [] }
    const [first] = diagnose(now, { ...healthy, commit, broker })
    assert.match(first?.sentence ?? '', /^The embedded broker \(embedded:\/data\/broker\) has not answered for 7 s\./)
    assert.match(first?.next ?? '', /a thread of this process.+df -h/)
    assert.doesNotMatch(`${first?.sentence} ${first?.next}`, /kafka-|Which broker/)
  })

  test('does not call a restart safe beside an embedded broker whose topics may be in memory', () => {
    const lanes = [{ ...lane, stepSinceMs: now - 20_000 }]
    for (const address of ['embedded:', 'embedded:/data', 'broker:9092']) {
      const found = diagnose(now, { ...healthy, lanes, engineSilentMs: 20_000, broker: { ...healthy.broker, address } })
      const safe = address === 'embedded:' ? /^(?!.*roll that back\.).*(Do not|before any) restart/ : /A restart loses/
      for (const { next } of found.slice(0, 2)) assert.match(next, safe)
    }
  })

  test('names settings with what is set now, and the commands that end an open transaction', () => {
    const settings = { processing: 'fail', deadLetterTopic: 'app-dead-letters' } as NonNullable<Facts['settings']>
    const record = { topic: 'in', partition: 0, offset: 7 }
    const failure = { code: 'PROCESSING_FAILED', message: 'it threw', restartHelps: false, record }
    const [poison] = diagnose(now, { ...healthy, state: 'FAILED', failure, settings })
    assert.match(poison?.next ?? '', /`errors\.processing` \(now fail\) to `dead-letter`.+ topic app-dead-letters/)
    const held = { ...partition, withheld: 5, lag: 5, withheldSinceMs: now - 6000 }
    const [open] = diagnose(now, { ...healthy, partitions: [held] })
    const tool = 'kafka-transactions.sh --bootstrap-server broker:9092'
    for (const command of [
      'describe-producers --topic in --partition 0',
      'abort --topic in --partition 0 --start-offset 7',
    ])
      assert.ok(open?.next.includes(`${tool} ${command}`), open?.next)
    // An abort decides over work of others: it comes after the proof that nobody else will.
    assert.match(open?.next ?? '', /find-hanging --topic in --partition 0`.+ if its owner agrees: `.+ abort /)
  })

  test('tells in its text who speaks, each sentence once, and the words that it used', () => {
    const facts = { ...healthy, process: 'process 17 on host-a', lanes: [{ ...lane, stepSinceMs: now - 7000 }] }
    const text = answerText(answerOf(verdictOf(facts, diagnose(now, facts), [])), 1000)
    assert.match(text, /^Application app, process 17 on host-a\nSTANDING since /)
    assert.equal(text.split('has been in one call of').length, 2)
    assert.match(text, /\n {2}lane: a thread of this process/)
    assert.match(text, /^ {2}Settings are in the configuration file .+ENGINE_INSTANCE_ID/m)
    assert.match(text, /More: node_modules\/millrace\/docs\/guide\/standstills\.md#lane-does-not-return/)
    const calm = answerText(answerOf(verdictOf(healthy, [], [])))
    assert.equal(calm.split('Records flow').length, 2)
  })

  test('says of a process that has no partitions that it has nothing to do', () => {
    const idle = { ...healthy, state: 'RUNNING', partitions: [] } as const
    assert.match(verdictOf(idle, diagnose(now, idle), []).verdict, /^No partition of the input is assigned/)
    const starts = { ...idle, state: 'STARTING' } as const
    assert.match(verdictOf(starts, diagnose(now, starts), []).verdict, /^The application starts; nothing/)
  })

  test('says of a process that starts that it waits for its place in the group', () => {
    const call = { kind: 'group', what: 'joining group app', sinceMs: now - 9000 } as const
    const node = { ...{ id: 1, address: 'kafka:9092', connected: true, sinceMs: 0, lastError: null }, calls: [call] }
    const facts = { ...healthy, state: 'STARTING', broker: { ...healthy.broker, nodes: [node] } } as const
    assert.match(verdictOf(facts, diagnose(now, facts), []).verdict, /its group has still to give it a place/)
    // Between two questions no call is under way.
    const starts = { ...healthy, state: 'STARTING', partitions: [], stateSinceMs: now - 9000 } as const
    assert.match(verdictOf(starts, [], [], now).verdict, /its group has still to give it a place/)
    assert.match(verdictOf({ ...starts, stateSinceMs: now - 900 }, [], [], now).verdict, /nothing stands in its way/)
  })

  test('finds a full buffer alone only where nothing moves at all', () => {
    const full = [{ ...partition, buffered: 1000, lag: 5000, fullSinceMs: now - 30_000 }]
    const still = [{ ...lane, rate: 0 }]
    assert.deepEqual(codesOf({ partitions: full, lanes: still }), [], 'records are let in')
    assert.deepEqual(codesOf({ partitions: full, lanes: still, dispatchedAtMs: now - 20_000 }), ['BUFFER_FULL'])
    assert.deepEqual(codesOf({ partitions: full, lanes: [{ ...lane, rate: 0.2 }], dispatchedAtMs: now - 20_000 }), [])
  })

  test('counts what broker and stores take of a commit, not what lanes take to finish their records', () => {
    const last = (durationsMs: object) =>
      [0, 1, 2, 3, 4].map((n) => ({
        commitId: `1.${n}`,
        outcome: 'COMMITTED' as const,
        atMs: now - n * 1500,
        durationsMs: { align: 0, flush: 0, offsets: 0, endTransaction: 0, apply: 0, ...durationsMs },
      }))
    const codes = (durationsMs: object, lateMs = 0, lanes = healthy.lanes): string[] =>
      codesOf({ lateMs, lanes, commit: { ...(healthy.commit as CommitFacts), last: last(durationsMs) } })
    assert.deepEqual(codes({ align: 1400, flush: 90 }), [], 'full load')
    assert.deepEqual(codes({ endTransaction: 1400 }), ['COMMITS_SLOW'])
    assert.deepEqual(codes({ endTransaction: 1400 }, 200), [], 'on a machine that is short of processors')
    const storing = (storesMs: number) => healthy.lanes.map((each) => ({ ...each, storesMs }))
    assert.deepEqual(codes({ apply: 1400 }, 0, storing(1390)), ['COMMITS_SLOW'])
    assert.deepEqual(codes({ apply: 1400 }, 0, storing(20)), [], 'the lanes were at other records')
    const owed = { IN_TX_COMMIT: { id: 3, address: 'kafka-3:9092', what: 'committing the transaction of app' } }
    const commit = { ...(healthy.commit as CommitFacts), owed, last: last({ endTransaction: 1400 }) }
    const [first] = diagnose(now, { ...healthy, commit })
    assert.match(
      first?.sentence ?? '',
      /1400 ms of that is spent waiting for the broker 3 at kafka-3:9092 to end the transaction\.$/,
    )
    assert.deepEqual(first?.place, { broker: 'kafka-3:9092' })
  })

  test('waits until evidence has lasted', () => {
    assert.deepEqual(codesOf({ broker: { ...healthy.broker, connected: false, sinceMs: now - 2000 } }), [])
    const withheld = (sinceMs: number) => [{ ...partition, withheld: 5, lag: 5, withheldSinceMs: sinceMs }]
    assert.deepEqual(codesOf({ partitions: withheld(now - 1000) }), [])
    assert.deepEqual(codesOf({ partitions: withheld(now - 6000) }), ['TRANSACTION_OPEN'])
  })
})
