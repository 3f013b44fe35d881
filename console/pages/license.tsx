import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useAsk } from '../ask/live.ts'
import type { License } from '../ask/model.ts'
import { instant, json } from '../parts/format.ts'
import { Panel } from '../parts/panel.tsx'

export function LicensePage(): JSX.Element {
  const license = useAsk<License>('/license', 10_000)
  const [named, setNamed] = useState(false)
  const { value } = license
  const fields = Object.entries(value ?? {}).filter(([name]) => name !== 'status' && name !== 'customerName')
  return (
    <Panel title="License" path="/license" kept={license}>
      {value !== undefined && (
        <>
          <p class="figures">
            <span>
              <b>{value.status}</b>
            </span>
          </p>
          <dl>
            <dt>customerName</dt>
            <dd>
              {named || value.customerName === null ? (
                (value.customerName ?? '–')
              ) : (
                <button type="button" onClick={() => setNamed(true)}>
                  Show
                </button>
              )}
            </dd>
            {fields.map(([name, each]) => [
              <dt key={`${name} name`}>{name}</dt>,
              <dd key={name}>{shown(name, each)}</dd>,
            ])}
          </dl>
        </>
      )}
    </Panel>
  )
}

function shown(name: string, value: unknown): string {
  if (value === null) return '–'
  return name.endsWith('At') && typeof value === 'string' ? instant(value) : json(value)
}
