/** The fetcher of the way in, with the settings of the application, and the figures that it shows. */
import { engineIndex, pollRecordsHistogram, pollSecondsHistogram } from '../../base/counters.ts'
import { durationBounds, observe, pollBounds } from '../../base/histograms.ts'
import type { EngineOptions } from '../engine-options.ts'
import { boundariesOf } from '../group/made-anew.ts'
import { Fetcher, type FetcherEvents } from './fetcher.ts'

type Shown = 'polled' | 'buffered' | 'requested' | 'warning'

export function inputFetcher(options: EngineOptions, events: Omit<FetcherEvents, Shown>): Fetcher {
  const { settings, broker, clock, timers, counters, layout } = options
  return new Fetcher(
    {
      broker,
      clock,
      timers,
      isolation: 'read_committed',
      bufferCapacity: settings.bufferedRecordsPerPartition,
      maxPollRecords: settings.maxPollRecords,
      maxWaitMs: settings.fetchMaxWaitMs,
      paceMs: settings.fetchPaceMs ?? 0,
      maxBytes: settings.fetchMaxBytes,
      maxPartitionBytes: settings.partitionFetchMaxBytes,
      maxBufferedBytes: settings.bufferedMaxBytes,
      outOfRange: settings.sourceReset,
      own: boundariesOf(settings),
    },
    {
      ...events,
      polled: (_, records) => {
        counters[engineIndex.polls] = (counters[engineIndex.polls] as number) + 1
        counters[engineIndex.pollRecords] = (counters[engineIndex.pollRecords] as number) + records
        observe(counters, pollRecordsHistogram(layout), pollBounds, records)
      },
      buffered: (bytes) => {
        counters[engineIndex.bufferedBytes] = bytes
        if (bytes > (counters[engineIndex.bufferedBytesPeak] as number)) counters[engineIndex.bufferedBytesPeak] = bytes
      },
      requested: (ms) => observe(counters, pollSecondsHistogram(layout), durationBounds, ms / 1000),
      warning: (message) => options.fact({ type: 'log', level: 'warn', message }),
    },
  )
}
