/** The text of a `.proto` file, written from its descriptor: what registries keep. Services and custom options are left out. */
import type {
  DescriptorProto,
  EnumDescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from '@bufbuild/protobuf/wkt'

/** By the numbers of `FieldDescriptorProto.Type`. */
const types = [
  '',
  'double',
  'float',
  'int64',
  'uint64',
  'int32',
  'fixed64',
  'fixed32',
  'bool',
  'string',
  'group',
  'message',
  'bytes',
  'uint32',
  'enum',
  'sfixed32',
  'sfixed64',
  'sint32',
  'sint64',
]
const group = 10
const repeated = 3
const required = 2

export function protoText(file: FileDescriptorProto): string {
  const isProto3 = file.syntax === 'proto3'
  const lines = [`syntax = "${isProto3 ? 'proto3' : 'proto2'}";`]
  if (file.package) lines.push(`package ${file.package};`)
  file.dependency.forEach((name, i) => {
    lines.push(`import ${file.publicDependency.includes(i) ? 'public ' : ''}"${name}";`)
  })
  for (const option of fileOptions(file)) lines.push(option)
  for (const message of file.messageType) lines.push(...messageLines(message, isProto3))
  for (const each of file.enumType) lines.push(...enumLines(each))
  return `${lines.join('\n')}\n`
}

function fileOptions({ options }: FileDescriptorProto): string[] {
  const lines: string[] = []
  if (options?.javaPackage) lines.push(`option java_package = "${options.javaPackage}";`)
  if (options?.javaOuterClassname) lines.push(`option java_outer_classname = "${options.javaOuterClassname}";`)
  if (options?.javaMultipleFiles) lines.push('option java_multiple_files = true;')
  return lines
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}

function messageLines(message: DescriptorProto, isProto3: boolean): string[] {
  const inner: string[] = []
  for (const { start, end } of message.reservedRange)
    inner.push(`reserved ${end - 1 === start ? start : `${start} to ${end - 1}`};`)
  if (message.reservedName.length > 0)
    inner.push(`reserved ${message.reservedName.map((name) => JSON.stringify(name)).join(', ')};`)
  for (const { start, end } of message.extensionRange) inner.push(`extensions ${start} to ${end - 1};`)
  const seen = new Set<number>()
  for (const field of message.field) {
    const { oneofIndex } = field
    if (oneofIndex === undefined || field.proto3Optional || !isInOneof(field)) {
      inner.push(...fieldLines(field, message, isProto3))
    } else if (!seen.has(oneofIndex)) {
      seen.add(oneofIndex)
      const members = message.field.filter((each) => isInOneof(each) && each.oneofIndex === oneofIndex)
      inner.push(`oneof ${message.oneofDecl[oneofIndex]?.name} {`)
      inner.push(...indented(members.map((each) => `${typeOf(each)} ${each.name} = ${each.number}${optionsOf(each)};`)))
      inner.push('}')
    }
  }
  const groups = message.field.flatMap((field) => groupOf(field, message) ?? [])
  for (const nested of message.nestedType)
    if (!nested.options?.mapEntry && !groups.includes(nested)) inner.push(...messageLines(nested, isProto3))
  for (const each of message.enumType) inner.push(...enumLines(each))
  return [`message ${message.name} {`, ...indented(inner), '}']
}

/** The member that descriptors of proto3 have for every field counts only where it was set. */
function isInOneof(field: FieldDescriptorProto): boolean {
  return Object.hasOwn(field, 'oneofIndex') && !field.proto3Optional
}

/** The message of a group, which stands in the place of its field. */
function groupOf({ type, typeName }: FieldDescriptorProto, message: DescriptorProto): DescriptorProto | undefined {
  return type === group
    ? message.nestedType.find(({ name }) => typeName?.endsWith(`.${message.name}.${name}`))
    : undefined
}

function fieldLines(field: FieldDescriptorProto, message: DescriptorProto, isProto3: boolean): string[] {
  const own = groupOf(field, message)
  if (own === undefined) return [fieldLine(field, message, isProto3)]
  const label = field.label === repeated ? 'repeated' : field.label === required ? 'required' : 'optional'
  const [, ...lines] = messageLines(own, isProto3)
  return [`${label} group ${own.name} = ${field.number} {`, ...lines]
}

function fieldLine(field: FieldDescriptorProto, message: DescriptorProto, isProto3: boolean): string {
  const rest = `${field.name} = ${field.number}${optionsOf(field)};`
  const entry = message.nestedType.find(
    ({ name, options }) => options?.mapEntry && field.typeName?.endsWith(`.${message.name}.${name}`),
  )
  if (entry !== undefined) {
    const [key, value] = entry.field as [FieldDescriptorProto, FieldDescriptorProto]
    return `map<${typeOf(key)}, ${typeOf(value)}> ${rest}`
  }
  const label = field.label === repeated ? 'repeated ' : field.label === required ? 'required ' : ''
  const optional = label === '' && (field.proto3Optional || !isProto3) ? 'optional ' : ''
  return `${label}${optional}${typeOf(field)} ${rest}`
}

function typeOf({ type, typeName }: FieldDescriptorProto): string {
  return typeName ? typeName : (types[type ?? 0] as string)
}

function optionsOf({ defaultValue, type, options }: FieldDescriptorProto): string {
  const parts: string[] = []
  if (defaultValue) parts.push(`default = ${type === 9 ? JSON.stringify(defaultValue) : defaultValue}`)
  if (options !== undefined && Object.hasOwn(options, 'packed')) parts.push(`packed = ${options.packed}`)
  if (options?.deprecated) parts.push('deprecated = true')
  return parts.length === 0 ? '' : ` [${parts.join(', ')}]`
}

function enumLines({ name, value, reservedRange, reservedName, options }: EnumDescriptorProto): string[] {
  const inner = options?.allowAlias ? ['option allow_alias = true;'] : []
  for (const each of value) inner.push(`${each.name} = ${each.number};`)
  for (const { start, end } of reservedRange) inner.push(`reserved ${end === start ? start : `${start} to ${end}`};`)
  if (reservedName.length > 0) inner.push(`reserved ${reservedName.map((each) => JSON.stringify(each)).join(', ')};`)
  return [`enum ${name} {`, ...indented(inner), '}']
}
