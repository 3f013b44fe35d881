/** From the configuration to what the coordinator is given. */
import type { Config } from '../config/config.ts'
import { selfFenceTimeoutMs } from '../config/rules.ts'
import { configKeys, rowOf } from '../config/table.ts'
import type { HaIdentity, HaSettings } from './contract.ts'
import { fingerprintOf } from './log/signature.ts'
import { shapeOf, shortHash } from './topology-shape.ts'

export function haSettings(config: Config, identity: HaIdentity): HaSettings {
  const { applicationId, groupId, hostname, topologyHash, topologyState, build } = identity
  return {
    applicationId,
    groupId,
    podId: config.get('ha.pod-id') ?? podIdOf(hostname),
    desiredStandbys: config.get('ha.desired-standbys'),
    failoverPriority: config.get('ha.failover-priority'),
    heartbeatIntervalMs: config.get('ha.heartbeat-interval'),
    selfFenceTimeoutMs: selfFenceTimeoutMs(config),
    failoverTimeoutMs: config.get('ha.failover-timeout'),
    handoffTimeoutMs: config.get('ha.handoff-timeout'),
    commandTtlMs: config.get('ha.command-ttl'),
    claimStaggerMs: config.get('ha.claim-stagger'),
    minPromotionIntervalMs: config.get('ha.min-promotion-interval'),
    readyMaxLagRecords: config.get('ha.ready-max-lag-records'),
    readyMaxLagMs: config.get('ha.ready-max-lag'),
    allowUnreadyFailover: config.get('ha.allow-unready-failover'),
    requireSafeTopic: config.get('ha.require-safe-topic'),
    commandSecret: config.get('ha.command-secret'),
    topologyHash,
    topologyShape: new Map(Object.entries(shapeOf(topologyState))),
    configHashes: configHashes(config, applicationId),
    build,
  }
}

/** Host names may hold what a pod id may not. */
function podIdOf(hostname: string): string {
  return hostname.replaceAll(/[^A-Za-z0-9._-]/g, '-').slice(0, 253) || 'pod'
}

/** Keys that must be the same on every pod. Of secrets only the one of commands is among them. */
function configHashes(config: Config, applicationId: string): Record<string, string> {
  const secret = config.get('ha.command-secret')
  // The first, for of several differences one is shown, and with this one commands are lost.
  const hashes: Record<string, string> = {
    'ha.command-secret': secret === null ? '' : fingerprintOf(secret, applicationId),
  }
  for (const key of configKeys) {
    const row = rowOf(key)
    if (row.scope !== 'application' || row.secret === true) continue
    hashes[key] = shortHash(JSON.stringify(config.get(key)))
  }
  return hashes
}
