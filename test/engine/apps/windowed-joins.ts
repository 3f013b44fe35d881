/**
 * Windowed tables joined with one another, of which one follows from a re-keyed stream. Both streams are in one part of the
 * topology, which feeds itself: the right one comes to it again by another key.
 */
import { defineApp, hopping, serdes, session, type Table, tumbling, type Windowed } from 'millrace'

export interface Event {
  readonly key: string
  readonly group: string
}

export type Pair = readonly [left: number | null, right: number | null]
type Counts = Table<Windowed<string>, number>

export const sizeMs = 5000
export const advanceMs = 2500
export const gapMs = 300

export default defineApp({
  applicationId: 'windowed-joins',
  build(topology) {
    const events = { key: serdes.string, value: serdes.json<Event>() }
    const left = topology.stream('left', events)
    const right = topology.stream('right', events)
    const [ofKey, ofGroup, ofSame] = [
      left.groupByKey(),
      right.groupBy(({ group }) => group),
      left.groupBy(({ key }) => key),
    ]
    const tell = (topic: string, one: Counts, other: Counts): void =>
      one
        .outerJoin(other, (l, r): Pair => [l ?? null, r ?? null])
        .toStream()
        .selectKey((_, { key, start, end }) => `${key}@${start}-${end}`)
        .to(topic, { key: serdes.string, value: serdes.json<Pair>() })
    const tumbled = tumbling(sizeMs)
    tell('tumbled', ofKey.windowedBy(tumbled).count(), ofGroup.windowedBy(tumbled).count())
    const hopped = hopping(sizeMs, advanceMs)
    tell('hopped', ofKey.windowedBy(hopped).count(), ofGroup.windowedBy(hopped).count())
    const closing = { emit: 'on-close' } as const
    tell('closed', ofKey.windowedBy(tumbled, closing).count(), ofGroup.windowedBy(tumbled, closing).count())
    tell('closing', ofKey.windowedBy(tumbled, closing).count(), ofGroup.windowedBy(tumbled).count())
    const apart = session(gapMs)
    tell('sessions', ofKey.windowedBy(apart).count(), ofSame.windowedBy(apart).count())
    left.merge(right).groupByKey().count().toStream().to('others')
  },
})
