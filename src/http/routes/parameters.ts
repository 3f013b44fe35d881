/** Query parameters an endpoint knows; all others are ignored. */
export type Parameter =
  | {
      readonly name: string
      readonly type: 'integer'
      readonly min: number
      readonly max: number
      readonly default: number
      readonly doc: string
    }
  | {
      readonly name: string
      readonly type: 'enum'
      readonly values: readonly string[]
      readonly default: string
      readonly doc: string
    }
  | { readonly name: string; readonly type: 'boolean'; readonly default: boolean; readonly doc: string }
  | {
      readonly name: string
      readonly type: 'name'
      readonly pattern: string
      readonly required: true
      /** What may stand there, for whoever sent something else; default: what a name may hold. */
      readonly shape?: string
      readonly doc: string
    }
  | {
      readonly name: string
      readonly type: 'text'
      /** `path`: the last part of the path, which must be there. Default: a query parameter that may be left out. */
      readonly in?: 'path'
      readonly maxLength: number
      readonly doc: string
    }

export type ParameterValue = string | number | boolean
export type ParameterValues = Readonly<Record<string, ParameterValue>>
export type Parsed =
  | { readonly ok: true; readonly values: ParameterValues }
  | { readonly ok: false; readonly error: string }

/** Reads what the endpoint knows, or says of the first fault what is wrong and what would be right. */
export function parseParameters(known: readonly Parameter[], query: string, inPath?: string): Parsed {
  if (known.length === 0) return { ok: true, values: {} }
  const given = new URLSearchParams(query)
  const values: Record<string, ParameterValue> = {}
  for (const parameter of known) {
    const texts = isInPath(parameter) ? [inPath ?? ''] : given.getAll(parameter.name)
    if (texts.length > 1)
      return { ok: false, error: `parameter '${parameter.name}' is given ${texts.length} times; give it once` }
    const value = texts[0] === undefined ? defaultOf(parameter) : parseValue(parameter, texts[0])
    if (value === undefined && parameter.type === 'text' && texts[0] === undefined) continue
    if (value === undefined) return { ok: false, error: faultOf(parameter, texts[0]) }
    values[parameter.name] = value
  }
  return { ok: true, values }
}

export function isInPath(parameter: Parameter): boolean {
  return parameter.type === 'text' && parameter.in === 'path'
}

function defaultOf(parameter: Parameter): ParameterValue | undefined {
  return parameter.type === 'name' || parameter.type === 'text' ? undefined : parameter.default
}

function parseValue(parameter: Parameter, text: string): ParameterValue | undefined {
  switch (parameter.type) {
    case 'integer': {
      if (!/^[0-9]{1,15}$/.test(text)) return undefined
      const value = Number(text)
      return value >= parameter.min && value <= parameter.max ? value : undefined
    }
    case 'enum':
      return parameter.values.includes(text) ? text : undefined
    case 'boolean':
      return text === 'true' ? true : text === 'false' ? false : undefined
    case 'text':
      return text.length > 0 && text.length <= parameter.maxLength ? text : undefined
    case 'name':
      return new RegExp(`^(?:${parameter.pattern})$`).test(text) ? text : undefined
  }
}

/** Never repeats what was sent: it may hold anything. */
function faultOf(parameter: Parameter, text: string | undefined): string {
  switch (parameter.type) {
    case 'integer':
      return `parameter '${parameter.name}' must be a whole number from ${parameter.min} to ${parameter.max}`
    case 'enum':
      return `parameter '${parameter.name}' must be one of ${parameter.values.join(', ')}`
    case 'boolean':
      return `parameter '${parameter.name}' must be true or false`
    case 'text':
      return text === ''
        ? `parameter '${parameter.name}' is empty; give ${parameter.doc}`
        : `parameter '${parameter.name}' must be 1 to ${parameter.maxLength} characters`
    case 'name':
      return text === undefined || text === ''
        ? `parameter '${parameter.name}' is missing; ${parameter.doc}`
        : `parameter '${parameter.name}' must be ${parameter.shape ?? '1 to 253 letters, digits, dots, underscores or dashes'}`
  }
}
