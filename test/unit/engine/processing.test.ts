/** What a run asks of the broker may be answered in the next one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineOptions } from '../../../src/engine/engine-options.ts'
import type { ResolvedTopics } from '../../../src/engine/group/topics.ts'
import { Processing, type ProcessingHost, type ProcessingParts } from '../../../src/engine/processing.ts'
import { RunOver, Runs } from '../../../src/engine/run.ts'

test('lanes are not configured for a run that is over when the broker answers', async () => {
  const answer = Promise.withResolvers<never[]>()
  const sent: unknown[] = []
  const plan = { subtopologies: [], sources: [], levels: 1 }
  const options = {
    settings: { lanes: 1, split: 'in-process', sinkTopics: ['out'], plan, defaultPartitions: 1 },
    broker: { kind: 'embedded', topics: () => answer.promise, createTopics: async () => undefined },
    send: (_: number, message: unknown) => sent.push(message),
  }
  const runs = new Runs()
  const topics = { topics: new Map(), bySource: [], boundaries: [], changelogPartitions: [] }
  const processing = new Processing(
    options as unknown as EngineOptions,
    { runs } as unknown as ProcessingParts,
    { ended: () => false } as unknown as ProcessingHost,
  )
  const configured = processing.configure(runs.next(), topics as unknown as ResolvedTopics)
  runs.next()
  answer.resolve([])
  await assert.rejects(configured, RunOver)
  assert.deepEqual(sent, [])
})
