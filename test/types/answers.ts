/**
 * Checked by the compiler alone: what the console takes an answer to be is what the schema of that answer promises. The console
 * is compiled for browsers, so it cannot import the schemas themselves.
 */
import type * as read from '../../console/ask/model.ts'
import type { Answer, SchemaName } from '../../src/http/routes/schemas.ts'

const promised = <Name extends SchemaName, Read>(_holds: Answer<Name> extends Read ? true : false): void => undefined

promised<'Flow', read.Flow>(true)
promised<'State', read.State>(true)
promised<'Info', read.Info>(true)
promised<'Watermarks', read.Watermarks>(true)
promised<'Offsets', read.Offsets>(true)
promised<'Consumer', read.Consumer>(true)
promised<'Threads', read.Threads>(true)
promised<'Stores', read.Stores>(true)
promised<'StoreRows', read.StoreRows>(true)
promised<'HaStatus', read.HaStatus>(true)
promised<'License', read.License>(true)
promised<'DeadLetters', read.Letters>(true)
promised<'Redriven', read.Redriven>(true)
promised<'TopologyDescription', read.KsTopology>(true)
promised<'Topology', read.Topology>(true)

/** Schemas leave open what is in these: a place differs from finding to finding, and so do the details of an indicator. */
interface Why extends Omit<read.Why, 'findings'> {
  readonly findings: ReadonlyArray<Omit<read.Finding, 'place'>>
}
promised<'Why', Why>(true)
interface Health extends Omit<read.Health, 'components'> {
  readonly components: ReadonlyArray<Omit<read.Health['components'][number], 'details'>>
}
promised<'HealthReport', Health>(true)

/** What else the console shows of commits is for those who debug the engine, and promised to nobody. */
interface Barriers extends Omit<read.Barriers, 'lanes' | 'last'> {
  readonly lanes: ReadonlyArray<Omit<read.Barriers['lanes'][number], 'at'>>
  readonly last: ReadonlyArray<Omit<read.Barriers['last'][number], 'atMs' | 'durationsMs'>>
}
promised<'Barriers', Barriers>(true)
