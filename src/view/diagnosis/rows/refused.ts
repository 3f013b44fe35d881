/** Commands of operators that a pod takes no notice of. */
import type { StandstillRow } from '../row.ts'
import { lasting, listed } from '../words.ts'

const commandsRefused: StandstillRow = {
  code: 'COMMANDS_REFUSED',
  severity: 'SLOW',
  title: 'Commands are refused',
  when: 'Commands of `millrace ha` that came through another pod have no signature, or a wrong one, for this pod.',
  explains: [],
  next: 'Set the same `ha.command-secret` on all pods, and start those again that have another one. Until then give commands through a pod that has the same as the active one. Where all have the same, somebody else writes to the coordinator topic in the name of that pod: look who may.',
  guide:
    'Records are processed all the same. What was refused holds on no pod that refuses it: where failover was paused so, such a pod may take over by itself.',
  find: ({ ha }, now) => {
    const refused = ha?.refused
    if (refused === undefined) return []
    const since = refused.sinceMs ?? now
    return [
      {
        sentence: `This pod refuses commands (a switch, a pause of failover) that come through ${listed(refused.podIds)}, seen ${lasting(now - since)} ago: their signature is missing or wrong, so the \`ha.command-secret\` there is not the one here, or somebody else writes in that name. Records are processed all the same.`,
        sinceMs: since,
        place: {},
        evidence: [{ at: '/ha/status', field: 'peers[].commandsRefused', value: refused.podIds.length }],
      },
    ]
  },
}

export const refusedRows: readonly StandstillRow[] = [commandsRefused]
