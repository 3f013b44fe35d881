import type { Config } from './config.ts'
import type { ConfigKey } from './table.ts'

/** A rule over several keys: the sentence says what must hold, `broken` whether it does not. */
export interface CrossRule {
  readonly keys: readonly ConfigKey[]
  readonly sentence: string
  readonly broken: (config: Config) => boolean
}

/** Time without acknowledged heartbeats after which an active pod stops by itself, in milliseconds. */
export function selfFenceTimeoutMs(config: Config): number {
  return config.get('ha.self-fence-timeout') ?? Math.round(config.get('ha.failover-timeout') * 0.8)
}

const ownAddresses: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost'])

/** Nobody but this machine can ask, or whoever asks has the token. */
export function isGuarded(config: Config): boolean {
  return config.get('runtime.http.auth.token') !== null || ownAddresses.has(config.get('runtime.http.host'))
}

const both = (config: Config, a: ConfigKey, b: ConfigKey): boolean =>
  (config.get(a) === null) === (config.get(b) === null)

export const crossRules: readonly CrossRule[] = [
  {
    keys: ['ha.heartbeat-interval', 'ha.self-fence-timeout', 'ha.failover-timeout'],
    sentence: 'four heartbeat intervals must fit into the self-fence timeout (by default 80 % of the failover timeout)',
    broken: (config) => 4 * config.get('ha.heartbeat-interval') > selfFenceTimeoutMs(config),
  },
  {
    keys: ['ha.self-fence-timeout', 'ha.failover-timeout'],
    sentence: 'the self-fence timeout must be shorter than the failover timeout',
    broken: (config) => selfFenceTimeoutMs(config) >= config.get('ha.failover-timeout'),
  },
  {
    keys: ['consumer.heartbeat.interval.ms', 'consumer.session.timeout.ms'],
    sentence: 'the heartbeat interval must be at most a third of the session timeout',
    broken: (config) => config.get('consumer.heartbeat.interval.ms') * 3 > config.get('consumer.session.timeout.ms'),
  },
  {
    keys: ['commit-barrier.interval-ms', 'producer.transaction.timeout.ms'],
    sentence: 'the transaction timeout must be longer than the commit interval, or the broker aborts every transaction',
    broken: (config) =>
      config.get('engine.processing.guarantee') === 'exactly-once' &&
      config.get('commit-barrier.interval-ms') >= config.get('producer.transaction.timeout.ms'),
  },
  {
    keys: ['runtime.http.tls.cert-file', 'runtime.http.tls.key-file'],
    sentence: 'certificate and private key go together: set both or neither',
    broken: (config) => !both(config, 'runtime.http.tls.cert-file', 'runtime.http.tls.key-file'),
  },
  {
    keys: ['runtime.endpoints.stores.enabled', 'runtime.endpoints.dead-letters.enabled', 'runtime.http.auth.token'],
    sentence: 'who shows rows or dead letters sets a token, or binds runtime.http.host to 127.0.0.1',
    broken: (config) =>
      (config.get('runtime.endpoints.stores.enabled') || config.get('runtime.endpoints.dead-letters.enabled')) &&
      !isGuarded(config),
  },
  {
    keys: ['schema-registry.give-up-after', 'commit-barrier.timeout-ms'],
    sentence: 'records must not wait longer for a schema than their commit waits for its lanes',
    broken: (config) =>
      config.get('schema-registry.url') !== null &&
      config.get('schema-registry.give-up-after') >= config.get('commit-barrier.timeout-ms'),
  },
  {
    keys: ['schema-registry.tls.cert-file', 'schema-registry.tls.key-file'],
    sentence: 'certificate and private key go together: set both or neither',
    broken: (config) => !both(config, 'schema-registry.tls.cert-file', 'schema-registry.tls.key-file'),
  },
  {
    keys: ['broker.tls.cert-file', 'broker.tls.key-file'],
    sentence: 'certificate and private key go together: set both or neither',
    broken: (config) => !both(config, 'broker.tls.cert-file', 'broker.tls.key-file'),
  },
  {
    keys: ['broker.sasl.mechanism', 'broker.sasl.username', 'broker.sasl.password'],
    sentence: 'PLAIN and SCRAM need a user name and a password',
    broken: (config) => {
      const mechanism = config.get('broker.sasl.mechanism')
      const needed = mechanism !== null && mechanism !== 'OAUTHBEARER'
      return needed && (config.get('broker.sasl.username') === null || config.get('broker.sasl.password') === null)
    },
  },
  {
    keys: [
      'broker.sasl.token',
      'broker.sasl.token-endpoint.url',
      'broker.sasl.token-provider',
      'broker.sasl.mechanism',
    ],
    sentence: 'OAUTHBEARER needs one of a token, a token endpoint where it gets one, and a token provider',
    broken: (config) =>
      config.get('broker.sasl.mechanism') === 'OAUTHBEARER' &&
      [
        config.get('broker.sasl.token'),
        config.get('broker.sasl.token-endpoint.url'),
        config.get('broker.sasl.token-provider'),
      ].filter((way) => way !== null).length !== 1,
  },
  {
    keys: [
      'broker.sasl.token-endpoint.url',
      'broker.sasl.token-endpoint.client-id',
      'broker.sasl.token-endpoint.client-secret',
    ],
    sentence: 'a token endpoint has an http: or https: address and wants a client id and a client secret',
    broken: (config) => {
      const url = config.get('broker.sasl.token-endpoint.url')
      const given =
        config.get('broker.sasl.token-endpoint.client-id') !== null &&
        config.get('broker.sasl.token-endpoint.client-secret') !== null
      return url !== null && !(isWebAddress(url) && given)
    },
  },
  {
    keys: ['runtime.http.advertised-address'],
    sentence: 'an advertised address is an http: or https: address without query, as in http://10.0.0.7:8080',
    broken: (config) => {
      const address = config.get('runtime.http.advertised-address')
      return !isWebAddress(address) || /[?#@]/.test(address ?? '')
    },
  },
  {
    keys: ['runtime.http.console.pods'],
    sentence: 'pods of the console are http: or https: addresses without a path, as in http://10.0.0.7:8080',
    broken: (config) => config.get('runtime.http.console.pods').some((pod) => !isOrigin(pod)),
  },
  {
    keys: ['runtime.http.headers-timeout', 'runtime.http.request-timeout'],
    sentence: 'the time for the headers must not exceed the time for the whole request',
    broken: (config) => config.get('runtime.http.headers-timeout') > config.get('runtime.http.request-timeout'),
  },
  {
    keys: ['license.server-url', 'license.key'],
    sentence: 'the license server must have an http: or https: address',
    broken: (config) => !isWebAddress(config.get('license.server-url')),
  },
  {
    keys: ['license.public-keys'],
    sentence: 'public keys must come from a file or an https: address, since whoever can change them can make licenses',
    broken: (config) => !isSafeKeyLocation(config.get('license.public-keys')),
  },
]

function isWebAddress(text: string | null): boolean {
  if (text === null) return true
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:')
}

function isOrigin(text: string): boolean {
  return isWebAddress(text) && URL.parse(text)?.href === `${URL.parse(text)?.origin}/`
}

/** Plain http is fine where nobody can get in between. */
function isSafeKeyLocation(location: string | null): boolean {
  if (location === null || !/^[a-z][a-z0-9+.-]*:\/\//i.test(location)) return true
  const url = URL.parse(location)
  const loopback = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback)
}
