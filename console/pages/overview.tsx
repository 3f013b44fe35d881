import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ask, settings } from '../ask/client.ts'
import { type Kept, refreshAll, useAsk } from '../ask/live.ts'
import type { Flow, Health, Info, Offsets, State, Why } from '../ask/model.ts'
import { Chart } from '../parts/chart.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { instant, json, lasting, number } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'
import { ShareBar, ShareLegend, shareWords } from '../parts/shares.tsx'
import { Table } from '../parts/table.tsx'
import { Pods } from './pods.tsx'
import { Verdict } from './verdict.tsx'

export function Overview({ theme }: { theme: string }): JSX.Element {
  return (
    <>
      <Pods />
      <Verdict />
      <Stages />
      <Trends theme={theme} />
      <Lifecycle />
      <HealthPanel />
      <Process />
    </>
  )
}

function Stages(): JSX.Element {
  const why = useAsk<Why>('/why')
  const flow = useAsk<Flow>('/flow?history=true')
  const offsets = useAsk<Offsets>('/offsets')
  const received = flow.value?.sources.reduce((all, { recordsPerSecond }) => all + recordsPerSecond, 0)
  const sent = flow.value?.sinks.reduce((all, { recordsPerSecond }) => all + recordsPerSecond, 0)
  return (
    <Panel title="From source to sink" path="/flow" kept={why}>
      <p class="figures">
        <span>
          <b>{number(received)}</b> records in /s
        </span>
        <span>
          <b>{number(sent)}</b> records out /s
        </span>
        <span>
          <b>{number(offsets.value?.totalLag)}</b> lag
        </span>
      </p>
      <ol class="stages">
        {why.value?.flow.map((stage) => (
          <li key={stage.stage}>
            <b>{stage.stage}</b>
            <ShareBar {...stage} />
            <span>
              {shareWords(stage)}
              {stage.by !== undefined && ` · by ${stage.by}${stage.place === undefined ? '' : ` at ${stage.place}`}`}
            </span>
          </li>
        ))}
      </ol>
      <ShareLegend />
    </Panel>
  )
}

function Trends({ theme }: { theme: string }): JSX.Element {
  const flow = useAsk<Flow>('/flow?history=true')
  const history = flow.value?.history ?? null
  return (
    <Panel title="The last 15 minutes" path="/flow?history=true" kept={flow}>
      {history === null || history.atMs.length < 2 ? (
        <p class="calm">A line every five seconds: the first ones are on their way.</p>
      ) : (
        <>
          <Chart
            label="Records per second"
            atMs={history.atMs}
            theme={theme}
            unit={number}
            lines={[
              { name: 'in', values: history.recordsIn },
              { name: 'out', values: history.recordsOut },
            ]}
          />
          <Chart
            label="Lag"
            atMs={history.atMs}
            theme={theme}
            unit={number}
            lines={[{ name: 'records', values: history.lag }]}
          />
          <Chart
            label="Commit"
            atMs={history.atMs}
            theme={theme}
            unit={lasting}
            lines={[{ name: 'duration', values: history.commitMs }]}
          />
          <Chart
            label="Watermark"
            atMs={history.atMs}
            theme={theme}
            unit={lasting}
            lines={[{ name: 'behind the clock', values: history.watermarkDelayMs }]}
          />
        </>
      )}
    </Panel>
  )
}

function Lifecycle(): JSX.Element {
  const state = useAsk<State>('/state')
  const { value } = state
  return (
    <Panel title="Lifecycle" path="/state" kept={state}>
      {value !== undefined && (
        <>
          <p class="figures">
            <span>
              <b>{value.current}</b> since {instant(value.since)}
            </span>
          </p>
          {value.failure !== undefined && (
            <p class="stale">
              <b>{value.failure.code}</b> {value.failure.message}
            </p>
          )}
          {!settings.readOnly && <PauseButtons state={value.current} />}
          <Table
            caption="Transitions, newest first"
            rows={value.history}
            keyOf={({ at, state: to }) => `${at} ${to}`}
            columns={[
              { name: 'State', cell: (row) => row.state },
              { name: 'From', cell: (row) => row.from },
              { name: 'At', cell: (row) => instant(row.at) },
            ]}
          />
        </>
      )}
    </Panel>
  )
}

function PauseButtons({ state }: { state: string }): JSX.Element {
  const [asking, setAsking] = useState<'pause' | 'unpause' | null>(null)
  const send = async (path: string): Promise<void> => {
    await ask(path, 'POST')
    refreshAll()
  }
  return (
    <p class="actions">
      <button type="button" disabled={state !== 'RUNNING'} onClick={() => setAsking('pause')}>
        Pause
      </button>
      <button type="button" disabled={state !== 'PAUSED' && state !== 'DRAINING'} onClick={() => setAsking('unpause')}>
        Resume
      </button>
      {asking !== null && (
        <Confirm
          title={asking === 'pause' ? 'Pause the application?' : 'Resume the application?'}
          action={asking === 'pause' ? 'Pause' : 'Resume'}
          act={() => send(`/${asking}`)}
          close={() => setAsking(null)}
        >
          <p>
            {asking === 'pause'
              ? 'What is under way is processed and committed; then nothing more is read until it is resumed.'
              : 'It goes on reading where it stopped.'}
          </p>
        </Confirm>
      )}
    </p>
  )
}

/** A probe that says DOWN is refused and answers nevertheless: what it said before must not stand for it. */
function answerOf(ready: Kept<Health>): Kept<Health> {
  const body = ready.refusal?.status === 503 ? (ready.refusal.body as Health | null) : null
  return body?.components === undefined ? ready : { ...ready, value: body, refusal: undefined }
}

function HealthPanel(): JSX.Element {
  const ready = answerOf(useAsk<Health>('/health/ready'))
  const report = ready.value
  return (
    <Panel title="Health" path="/health/ready" kept={ready}>
      {report?.error !== undefined && <p class="stale">{report.error}.</p>}
      <Table
        caption="Indicators of readiness"
        rows={report?.components ?? []}
        keyOf={({ name }) => name}
        columns={[
          { name: 'Indicator', cell: ({ name }) => name },
          { name: 'Status', cell: ({ status }) => status },
          { name: 'Details', cell: ({ details }) => <code>{json(details)}</code> },
        ]}
      />
    </Panel>
  )
}

function Process(): JSX.Element {
  const info = useAsk<Info>('/info', 10_000)
  const { value } = info
  return (
    <Panel title="Process" path="/info" kept={info}>
      {value !== undefined && (
        <dl>
          <dt>Application</dt>
          <dd>{value.app.applicationId}</dd>
          <dt>Lanes</dt>
          <dd>{value.app.lanes}</dd>
          <dt>Node.js</dt>
          <dd>{value.platform.version}</dd>
          <dt>Broker</dt>
          <dd>
            {value.broker.bootstrapServers}
            {value.broker.connected
              ? ''
              : ` · not connected${value.broker.fault === null ? '' : `: ${value.broker.fault}`}`}
          </dd>
          <dt>Started</dt>
          <dd>{instant(value.uptime.startTime)}</dd>
        </dl>
      )}
    </Panel>
  )
}
