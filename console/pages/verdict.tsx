import type { JSX } from 'preact'
import { useAsk } from '../ask/live.ts'
import type { Finding, Why } from '../ask/model.ts'
import { instant, json } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'

/** What holds the application up, first of all. */
export function Verdict(): JSX.Element {
  const why = useAsk<Why>('/why')
  const { value } = why
  return (
    <Panel title="Verdict" path="/why" kept={why} wide>
      {value !== undefined && (
        <>
          <p class={`verdict ${value.status.toLowerCase()}`}>
            <b class="status">{value.status}</b> {value.verdict}
          </p>
          <p class="calm">Since {instant(value.since)}.</p>
          {value.findings.map((finding, i) => (
            <FindingView key={keyOf(finding)} finding={finding} isFirst={i === 0} />
          ))}
        </>
      )}
    </Panel>
  )
}

/** The same one when it has moved on by a record: what somebody has opened stays open. */
function keyOf({ code, place: { offset: _, ...place } }: Finding): string {
  return `${code} ${json(place)}`
}

function FindingView({ finding, isFirst }: { finding: Finding; isFirst: boolean }): JSX.Element {
  const { code, sentence, since, place, next, evidence, leadsTo } = finding
  const places = Object.entries(place).filter(([, value]) => value !== undefined && value !== null)
  return (
    <details class="finding" open={isFirst}>
      <summary>
        <b>{code}</b> {sentence}
      </summary>
      <dl>
        <dt>Since</dt>
        <dd>{instant(since)}</dd>
        {places.map(([name, value]) => [
          <dt key={`${name} name`}>{name}</dt>,
          <dd key={name}>
            <code>{json(value)}</code>
          </dd>,
        ])}
        <dt>What to do</dt>
        <dd>{next}</dd>
        {leadsTo.length > 0 && <dt>Leads to</dt>}
        {leadsTo.length > 0 && <dd>{leadsTo.join(', ')}</dd>}
        <dt>Seen at</dt>
        <dd>
          {evidence.map(({ at, field, value }) => (
            <div key={`${at} ${field}`}>
              <code>{at}</code> {field}: {json(value)}
            </div>
          ))}
        </dd>
      </dl>
      <p>
        <a href="#/threads">What the lanes are in</a>
        {typeof place.node === 'string' && (
          <>
            {' · '}
            <a href={`#/topology?node=${encodeURIComponent(place.node)}`}>Where it is in the topology</a>
          </>
        )}
      </p>
    </details>
  )
}
