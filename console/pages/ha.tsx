import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ask, settings } from '../ask/client.ts'
import { refreshAll, useAsk } from '../ask/live.ts'
import type { HaStatus } from '../ask/model.ts'
import { Confirm } from '../parts/confirm.tsx'
import { compareNames, lasting, number } from '../parts/format.ts'
import { Off, Panel } from '../parts/panel.tsx'
import { Table } from '../parts/table.tsx'

type Verb = 'switch' | 'promote' | 'demote'

interface Pod {
  readonly podId: string
  readonly role: string
  readonly state: string
  readonly lagRecords: number
  readonly lagMs: number
  readonly seen: string
  readonly restarting: boolean
}

export function HaPage(): JSX.Element {
  const ha = useAsk<HaStatus>('/ha/status')
  const { value } = ha
  if (ha.refusal?.status === 404) {
    return (
      <Panel title="High availability" path="/ha/status">
        <Off what="This process runs alone." path="/ha/status" />
      </Panel>
    )
  }
  const pods = value === undefined ? [] : podsOf(value)
  return (
    <>
      <Panel title="Pods" path="/ha/status" kept={ha} wide>
        {value !== undefined && (
          <>
            <p>
              {value.readyStandbyCount} of {value.desiredStandbys} standbys are ready
              {value.redundancyBelowDesired ? ': fewer than desired' : ''}. The token is held by{' '}
              {value.tokenHolder || 'nobody'} in epoch {value.tokenEpoch}.
              {value.failoverPaused === true && ' Maintenance: nobody takes over by itself.'}
            </p>
            {value.restartRequired !== null && <p class="stale">{value.restartRequired}</p>}
          </>
        )}
        <Table
          caption="Pods of the group"
          rows={pods}
          keyOf={({ podId }) => podId}
          columns={[
            { name: 'Pod', cell: ({ podId }) => (podId === value?.selfPodId ? `${podId} (this one)` : podId) },
            { name: 'Role', cell: ({ role }) => role },
            { name: 'State', cell: ({ state, restarting }) => (restarting ? `${state}, restarts` : state) },
            { name: 'Lag records', right: true, cell: ({ lagRecords }) => number(lagRecords) },
            { name: 'Lag', right: true, cell: ({ lagMs }) => lasting(lagMs) },
            { name: 'Last seen', right: true, cell: ({ seen }) => seen },
          ]}
        />
        {!settings.readOnly && value !== undefined && <Commands pods={pods} />}
      </Panel>
      <Panel title="Commands" path="/ha/status" kept={ha} wide>
        <Table
          caption="Commands, newest first"
          rows={value?.commands ?? []}
          keyOf={({ commandOffset }) => String(commandOffset)}
          empty="Nobody has given a command."
          columns={[
            { name: 'Offset', right: true, cell: ({ commandOffset }) => commandOffset },
            { name: 'Command', cell: ({ command, target }) => `${command} ${target ?? ''}` },
            { name: 'Given to', cell: ({ issuer }) => issuer },
            { name: 'Outcome', cell: ({ outcome }) => outcome },
            { name: 'Why', cell: ({ reason }) => reason ?? '' },
          ]}
        />
      </Panel>
    </>
  )
}

function podsOf(status: HaStatus): Pod[] {
  const self = {
    podId: status.selfPodId,
    role: status.selfRole,
    state: status.selfState,
    lagRecords: status.replicationLagRecords,
    lagMs: status.replicationLagMs,
    seen: 'now',
    restarting: status.selfRestarting,
  }
  const peers = status.peers
    .filter(({ podId }) => podId !== self.podId)
    .map((peer) => ({
      podId: peer.podId,
      role: peer.role,
      state: peer.state,
      lagRecords: peer.replicationLagRecords,
      lagMs: peer.replicationLagMs,
      seen: `${lasting(peer.freshnessMs)} ago`,
      restarting: peer.restarting,
    }))
  return [self, ...peers].sort((a, b) => compareNames(a.podId, b.podId))
}

function Commands({ pods }: { pods: readonly Pod[] }): JSX.Element {
  const [asking, setAsking] = useState<{ verb: Verb; pod: string | null } | null>(null)
  const [force, setForce] = useState(false)
  const [sent, setSent] = useState('')
  // What was forced before says nothing of the next command.
  const begin = (verb: Verb, pod: string | null): void => {
    setForce(false)
    setAsking({ verb, pod })
  }
  const standbys = pods.filter(({ role }) => role !== 'ACTIVE')
  const actives = pods.filter(({ role }) => role === 'ACTIVE')
  const send = async (verb: Verb, pod: string | null): Promise<void> => {
    const query = new URLSearchParams({ ...(pod !== null && { pod }), ...(force && { force: 'true' }) })
    const { commandOffset } = await ask<{ commandOffset: number }>(`/ha/${verb}?${query}`, 'POST')
    setSent(`Published at offset ${commandOffset}; below it says what became of it.`)
    refreshAll()
  }
  return (
    <>
      <p class="actions">
        <button type="button" onClick={() => begin('switch', null)}>
          Switch
        </button>
        {standbys.map(({ podId }) => (
          <button key={podId} type="button" onClick={() => begin('promote', podId)}>
            Promote {podId}
          </button>
        ))}
        {actives.map(({ podId }) => (
          <button key={podId} type="button" onClick={() => begin('demote', podId)}>
            Demote {podId}
          </button>
        ))}
        <span role="status">{sent}</span>
      </p>
      {asking !== null && (
        <Confirm
          title={`${asking.verb} ${asking.pod ?? ''}`}
          word={asking.pod ?? 'switch'}
          action="Publish the command"
          act={() => send(asking.verb, asking.pod)}
          close={() => setAsking(null)}
        >
          <p>
            The active pod drains, and another takes over. No record is lost, and none is processed twice; for a moment
            nothing is processed.
          </p>
          <label>
            <input type="checkbox" checked={force} onChange={(event) => setForce(event.currentTarget.checked)} /> Force:
            also where no standby is ready. It restores fully before it processes.
          </label>
        </Confirm>
      )}
    </>
  )
}
