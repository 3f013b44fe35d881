import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ask, settings } from '../ask/client.ts'
import { refreshAll, useAsk } from '../ask/live.ts'
import type { Flow, Letter, Letters, Redriven } from '../ask/model.ts'
import { Confirm } from '../parts/confirm.tsx'
import { instant, json, number } from '../parts/format.ts'
import { Off, Panel } from '../parts/panel.tsx'

/** The broker is asked for them: seldom, and by whoever wants to know. */
const everyMs = 30_000

export function DeadLettersPage(): JSX.Element {
  const flow = useAsk<Flow>('/flow')
  const [reason, setReason] = useState('')
  const path = `/dead-letters?limit=50${reason === '' ? '' : `&reason=${encodeURIComponent(reason)}`}`
  const letters = useAsk<Letters>(path, everyMs)
  const { value } = letters
  const counts = Object.entries(flow.value?.deadLetters ?? {}).filter(([, count]) => count > 0)
  return (
    <>
      <Panel title="Dead letters since the start" path="/flow" kept={flow}>
        {counts.length === 0 ? (
          <p class="calm">None. The settings below errors.* say which records become one.</p>
        ) : (
          <dl>
            {counts.map(([name, count]) => [<dt key={`${name} name`}>{name}</dt>, <dd key={name}>{number(count)}</dd>])}
          </dl>
        )}
      </Panel>
      <Panel title="Newest" path={path} wide {...(letters.refusal?.status === 404 ? {} : { kept: letters })}>
        {letters.refusal?.status === 404 && (
          <Off what="Dead letters are not shown: they are the application's data." path="/dead-letters" />
        )}
        {value !== undefined && (
          <>
            <p class="actions">
              <label>
                Reason{' '}
                <select value={reason} onChange={(event) => setReason(event.currentTarget.value)}>
                  <option value="">all</option>
                  {Object.entries(value.byReason).map(([name, count]) => (
                    <option key={name} value={name}>
                      {name} ({count})
                    </option>
                  ))}
                </select>
              </label>
              <button type="button" onClick={refreshAll}>
                Look again
              </button>
              {!settings.readOnly && <Redrive reason={reason} />}
            </p>
            {value.letters.map((letter) => (
              <LetterView key={`${letter.partition}:${letter.offset}`} letter={letter} />
            ))}
            {value.letters.length === 0 && <p class="calm">There are none in {value.topic}.</p>}
          </>
        )}
      </Panel>
    </>
  )
}

function LetterView({ letter }: { letter: Letter }): JSX.Element {
  const { partition, offset, timestamp, reason, message, source, key, value, headers, redriven } = letter
  return (
    <details>
      <summary>
        <b>{reason}</b> {message} <span class="calm">{instant(timestamp)}</span>
        {redriven && <span class="state waiting"> put back</span>}
      </summary>
      <dl>
        <dt>Letter</dt>
        <dd>
          partition {partition}, offset {offset}
        </dd>
        <dt>Record</dt>
        <dd>{source === null ? 'none caused it' : `${source.topic}:${source.partition} at ${source.offset}`}</dd>
        <dt>Key</dt>
        <dd>
          <code>{json(key)}</code>
        </dd>
        <dt>Value</dt>
        <dd>
          <code>{json(value)}</code>
        </dd>
        {headers.map(([name, said], i) => [
          <dt key={`${i} name`}>{name}</dt>,
          <dd key={i}>
            <code>{said ?? 'null'}</code>
          </dd>,
        ])}
      </dl>
    </details>
  )
}

/** Says first what it would do. */
function Redrive({ reason }: { reason: string }): JSX.Element {
  const [plan, setPlan] = useState<Redriven | null>(null)
  const [told, setTold] = useState('')
  const post = (dryRun: boolean, ends?: string): Promise<Redriven> => {
    const query = new URLSearchParams({ 'dry-run': String(dryRun), limit: '1000', ...(reason !== '' && { reason }) })
    if (ends !== undefined) query.set('ends', ends)
    return ask<Redriven>(`/dead-letters/redrive?${query}`, 'POST')
  }
  const look = async (): Promise<void> => {
    try {
      setPlan(await post(true))
    } catch (error) {
      setTold(error instanceof Error ? error.message : String(error))
    }
  }
  const act = async (): Promise<void> => {
    let done = 0
    let ends = plan?.ends
    for (let more = true; more; ) {
      const result = await post(false, ends)
      ends = result.ends
      done += result.redriven
      more = result.more
    }
    setTold(`${done} put back.`)
    refreshAll()
  }
  return (
    <>
      <button type="button" onClick={() => void look()}>
        Put back …
      </button>
      <span role="status">{told}</span>
      {plan !== null && (
        <Confirm
          title={`Put back ${plan.redriven}${plan.more ? ' and more' : ''} dead letters?`}
          word="redrive"
          action="Put back"
          act={act}
          close={() => setPlan(null)}
        >
          <p>
            Of {plan.matched} letters {reason === '' ? '' : `with the reason ${reason} `}
            {plan.redriven} are written once more to the topics that they came from; {plan.already} were put back
            before, and {plan.gone} cannot be: the record is gone, or of a repartition topic. None is put back twice.
          </p>
        </Confirm>
      )}
    </>
  )
}
