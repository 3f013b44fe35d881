/** What to do about a pod that has the token of high availability and is not active yet. */
import type { Facts, HaFacts } from '../facts.ts'
import { setting, time } from './advice.ts'

/** While the pod with the token is heard, nobody else takes over by itself. */
export function promotingNext(
  promoting: NonNullable<HaFacts['promoting']>,
  { podId, failoverPaused }: HaFacts,
  settings: Facts['settings'],
): string {
  const { podId: holder, diskFull } = promoting
  const timeout = setting('ha.handoff-timeout', time(settings?.handoffTimeoutMs))
  const ask = `\`millrace why --url\` with the address of the pod ${holder} says what it waits for`
  const doFirst = diskFull
    ? `Make room on the disk of the pod ${holder}: ${ask}, and it goes on by itself then.`
    : `Wait, and ask again in some seconds: ${ask}, and how much it has still to restore.`
  const gives =
    diskFull && failoverPaused === null
      ? ` Once it has waited for ${timeout} it gives the role to a ready pod by itself, if there is one of a priority above 0.`
      : ''
  return `${doFirst}${gives} No other pod takes over by itself meanwhile. Where the pod ${holder} does not get on, let this process take over: \`millrace ha promote ${podId} --wait\`, with the same \`--url\` (\`--force\` where this one is not ready). That is carried out after twice ${timeout}, and nothing is lost: Kafka refuses the pod ${holder} from then on.`
}
