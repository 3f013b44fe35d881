/**
 * Unions of Avro that are read as the branch which was written. The library takes the first branch that the written type
 * can become: a text is bytes where bytes stand in front of texts.
 */
import type { Type } from 'avsc'
import { bufferOf } from './avro-scalars.ts'

interface Branch {
  readonly typeName: string
  readonly name?: string
  readonly aliases?: readonly string[]
  readonly underlyingType?: Branch
}

interface Branches {
  readonly types: readonly Branch[]
}

interface UnionPrototype {
  _update(this: Branches, resolver: unknown, writer: Branch, options: unknown): void
  _getIndex?(value: unknown): number | undefined
}

type UnionClass = new (types: readonly Type[], options: unknown) => Type

interface Library {
  readonly Type: { forSchema(schema: unknown, options?: object): Type }
  readonly types: { readonly UnwrappedUnionType: unknown; readonly WrappedUnionType: unknown }
}

/** What makes a union of branches: which of its two forms it has, the library says. */
export function fittingUnions(library: Library): (branches: readonly unknown[], options: object) => Type {
  const wrapped = fitting(library.types.WrappedUnionType)
  const unwrapped = fitting(library.types.UnwrappedUnionType)
  return (branches, options) => {
    const types = branches.map((branch) => library.Type.forSchema(branch, options))
    const isWrapped = library.Type.forSchema(types).typeName === 'union:wrapped'
    return new (isWrapped ? wrapped : unwrapped)(types, options)
  }
}

function fitting(library: unknown): UnionClass {
  const base = (library as { readonly prototype: UnionPrototype }).prototype
  const Fitting = class extends (library as new (...given: unknown[]) => object) {}
  const members: UnionPrototype = {
    _update(resolver, writer, options) {
      base._update.call({ types: byFit(this.types, writer) }, resolver, writer, options)
    },
  }
  const { _getIndex: indexOf } = base
  if (indexOf !== undefined) {
    members._getIndex = function (value) {
      return indexOf.call(this, value instanceof Uint8Array ? bufferOf(value) : value)
    }
  }
  Object.assign(Fitting.prototype, members)
  return Fitting as unknown as UnionClass
}

/** The branch of the written type itself, then those of its kind, then what it can become. */
function byFit(types: readonly Branch[], writer: Branch): Branch[] {
  const ranks = types.map((type) => rankOf(type.underlyingType ?? type, writer))
  return [0, 1, 2].flatMap((rank) => types.filter((_, i) => ranks[i] === rank))
}

function rankOf(branch: Branch, writer: Branch): number {
  if (kindOf(branch) !== kindOf(writer)) return 2
  const { name } = writer
  return name === undefined || branch.name === name || branch.aliases?.includes(name) === true ? 0 : 1
}

function kindOf({ typeName }: Branch): string {
  return typeName === 'abstract:long' ? 'long' : typeName === 'error' ? 'record' : typeName
}
