/** What stands in the place of every secret, in every rendering. */
export const mask = '******'

const secretWords = [
  'password',
  'passwd',
  'passphrase',
  'pwd',
  'secret',
  'token',
  'credential',
  'apikey',
  'privatekey',
  'secretkey',
  'accesskey',
  'licensekey',
  'jaas',
  'authorization',
  'cookie',
  'connectionstring',
  'userinfo',
]
/** Endings that tell something about a secret without being it: where it lies, how long it lasts, of what kind it is. */
const aboutSecret =
  /(file|files|path|dir|location|endpoint|url|uri|host|port|type|source|ttl|timeout|ms|seconds|interval|expiry|enabled|required|length|count|class|provider|mechanism|algorithm|scope|audience|issuer|header|name|id)$/
/** Names that say nothing themselves: what they hang under decides. Array positions are such names too. */
const neutral = /^(value|values|text|plain|data|content|default|config|\d+)$/
const pluralSecret = /(passwords|passphrases|secrets|tokens|credentials|apikeys|privatekeys)$/

function normal(segment: string): string {
  return segment.toLowerCase().replace(/[-_]/g, '')
}

function isSecretName(name: string): boolean {
  return secretWords.some((word) => name.includes(word)) && !aboutSecret.test(name)
}

/**
 * Whether a dotted key names a secret. The last segment decides (`license.key-file` and `x.token-endpoint` are none),
 * together with the one before it where a dot stands for a dash (`api.key`, `sasl.jaas.config`), and everything under
 * a collection of secrets (`credentials.…`) is one.
 */
export function isSecretKey(key: string): boolean {
  const segments = key.split('.').map(normal)
  const last = segments.at(-1) as string
  if (isSecretName(last)) return true
  const pair = `${segments.at(-2) ?? ''}${last}`
  if (/(apikey|privatekey|secretkey|accesskey|licensekey|jaasconfig|connectionstring|userinfo)$/.test(pair)) return true
  if (neutral.test(last) && segments.length > 1) return isSecretKey(segments.slice(0, -1).join('.'))
  return segments.slice(0, -1).some((segment) => pluralSecret.test(segment)) && !aboutSecret.test(last)
}

const secretNames =
  'passwords?|passwd|passphrase|pwd|secret|token|credentials?|api[-_. ]?key|private[-_.]?key|access[-_.]?key'
const quoted = `"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?`
const assignment = new RegExp(
  `(${secretNames}|license[-_.]?key)(\\\\?["']?\\s*[=:]\\s*)(\\\\"(?:[^"\\\\])*|${quoted}|[^\\s,;&"')\\]}]+)`,
  'gi',
)
// The second form is for passwords with unescaped slashes and the like; a slash in the user's name would take paths for users.
const userInfo = /\b([a-z][a-z0-9+.-]{0,31}:\/\/)(?:[^\s/?#"'<>,]{0,2048}@|[^\s/@:"'<>]{1,256}:[^\s"'<>@]{0,2048}@)/gi
/** The same without a scheme, as in a list of servers. */
const bareUserInfo = /(^|[\s,;"'(=])[^\s,;:@/"'()=]{1,128}:[^\s,@/"']{1,256}@(?=[a-z0-9[])/gi
const pem = /-----BEGIN [A-Z0-9 ]{1,64}-----[\s\S]*?(?:-----END [A-Z0-9 ]{1,64}-----|$)/g
const jwt = /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)*/g
const authorization = /(authorization["']?\s*[:=]\s*["']?(?:[a-z]+ +)?)[^\s"',;]+/gi
const bearer = /\b(bearer\s+)(?=[a-z0-9._~+/-]*\d)[a-z0-9._~+/-]{6,}=*/gi

/**
 * Free text (a log line, an error) with everything masked that looks like a secret: user-info in URLs, `password=…`
 * and its kin, PEM blocks, JWTs, authorization headers.
 */
export function maskText(text: string): string {
  return text
    .replace(pem, mask)
    .replace(jwt, mask)
    .replace(userInfo, `$1${mask}@`)
    .replace(bareUserInfo, `$1${mask}@`)
    .replace(authorization, `$1${mask}`)
    .replace(bearer, `$1${mask}`)
    .replace(assignment, (whole, name: string, sign: string, value: string) =>
      value === mask ? whole : `${name}${sign}${mask}`,
    )
}

/** A configuration value as text that may be shown: wholly masked unless only user-info of a URL had to go. */
function maskString(text: string): string {
  const withoutUserInfo = text.replace(userInfo, `$1${mask}@`).replace(bareUserInfo, `$1${mask}@`)
  return maskText(withoutUserInfo) === withoutUserInfo ? withoutUserInfo : mask
}

/**
 * A value under a key, fit to be shown. Recursive through arrays and objects; null stays null, since nothing is
 * hidden there and operators need to see that it is unset.
 *
 * @param isKnownSecret recognises text that is a secret by where it came from.
 */
export function maskValue(
  key: string,
  value: unknown,
  isKnownSecret: (text: string) => boolean = () => false,
): unknown {
  if (value === null || value === undefined) return value
  if (isSecretKey(key)) return mask
  if (typeof value === 'string') return isKnownSecret(value) ? mask : maskString(value)
  if (Array.isArray(value)) return value.map((item, i) => maskValue(`${key}.${i}`, item, isKnownSecret))
  if (typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, maskValue(`${key}.${name}`, item, isKnownSecret)]),
    )
  }
  return value
}
