import Negotiator from 'negotiator'

/**
 * The offered type that the client likes best; the first offered one where it does not care or likes none.
 * A range that is spelt out beats a wildcard, and of equals the one named first wins.
 */
export function preferredType<T extends string>(accept: string | undefined, offered: readonly [T, ...T[]]): T {
  if (accept === undefined || accept.trim() === '') return offered[0]
  const chosen = new Negotiator({ headers: { accept: withoutParameters(accept) } }).mediaType(offered)
  return (chosen as T | undefined) ?? offered[0]
}

/** `text/yaml;charset=utf-8;q=0.5` asks for what `text/yaml;q=0.5` asks for: only the quality counts. */
function withoutParameters(accept: string): string {
  return accept
    .split(',')
    .map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
      const quality = parameters.find((parameter) => /^q\s*=/i.test(parameter))
      return quality === undefined ? type : `${type};q=${quality.slice(quality.indexOf('=') + 1).trim()}`
    })
    .join(',')
}
