import type { JSX } from 'preact'
import { useAsk } from '../ask/live.ts'
import type { Barriers } from '../ask/model.ts'
import { instant, lasting, number } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

const phases = ['align', 'flush', 'offsets', 'endTransaction', 'apply'] as const

export function CommitsPage(): JSX.Element {
  const barriers = useAsk<Barriers>('/debug/barriers')
  const { value } = barriers
  return (
    <>
      <Panel title="Commit under way" path="/debug/barriers" kept={barriers}>
        {value !== undefined && (
          <dl>
            <dt>Phase</dt>
            <dd>
              <b>{value.phase}</b> for {lasting(value.phaseAgeMs)}
            </dd>
            <dt>Commit</dt>
            <dd>{value.commitId ?? 'none'}</dd>
            <dt>Epoch</dt>
            <dd>{number(value.epoch)}</dd>
            <dt>Begun because</dt>
            <dd>{value.trigger ?? '–'}</dd>
            <dt>Waits for</dt>
            <dd>{value.outstandingLanes.join(', ') || 'no lane'}</dd>
            <dt>Another one is asked for</dt>
            <dd>{value.queued ? 'yes' : 'no'}</dd>
          </dl>
        )}
      </Panel>
      <Panel title="Restarts in place" path="/debug/barriers" kept={barriers}>
        {value !== undefined && (
          <>
            <p>
              {value.restarts.used} of {value.restarts.max} within {lasting(value.restarts.windowMs)}.
            </p>
            <ol>
              {value.restarts.causes.map((cause, i) => (
                <li key={`${i} ${cause}`}>{cause}</li>
              ))}
            </ol>
          </>
        )}
      </Panel>
      <Panel title="Lanes" path="/debug/barriers" kept={barriers} wide>
        <Table
          caption="Lanes and what each is at"
          rows={value?.lanes ?? []}
          keyOf={({ lane }) => lane}
          columns={[
            { name: 'Lane', cell: ({ lane }) => lane },
            { name: 'Through', cell: ({ acked }) => (acked ? 'yes' : 'no') },
            { name: 'Queued', right: true, cell: ({ queuedRecords }) => number(queuedRecords) },
            { name: 'Node', cell: ({ node }) => node ?? '' },
            {
              name: 'Record',
              cell: ({ at }) => (at === null ? '' : `${at.topic}:${at.partition} at ${at.offset}`),
            },
          ]}
        />
      </Panel>
      <Panel title="Last commits" path="/debug/barriers" kept={barriers} wide>
        <Table
          caption="Last commits, newest first"
          rows={value?.last ?? []}
          keyOf={({ commitId, atMs }) => `${commitId} ${atMs}`}
          columns={[
            { name: 'Commit', cell: ({ commitId }) => commitId },
            { name: 'Outcome', cell: ({ outcome }) => outcome },
            { name: 'At', cell: ({ atMs }) => instant(atMs) },
            ...phases.map((phase) => ({
              name: phase,
              right: true,
              cell: ({ durationsMs }: Barriers['last'][number]) => lasting(durationsMs[phase]),
            })),
          ]}
        />
      </Panel>
    </>
  )
}
