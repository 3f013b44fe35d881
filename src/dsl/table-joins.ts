/** The operators behind a join of two tables by their keys. */
import { checkOptions } from '../topology/check-given.ts'
import { GraphNode } from '../topology/graph.ts'
import type { PhysicalBuilder } from '../topology/physical.ts'
import { type AnySerde, refuseUnkept, settingsOf, tableStore } from './build.ts'
import type { TableParts } from './handle.ts'
import { getterStores, JoinTable, type TableJoinShape } from './table-model.ts'
import { type Stored, storedOptions } from './types.ts'

export function addTableJoin(
  left: TableParts,
  right: TableParts,
  shape: TableJoinShape,
  options: Stored | undefined,
): TableParts {
  const method = shape.rightOuter ? 'outerJoin' : shape.leftOuter ? 'leftJoin' : 'join'
  checkOptions(method, options, storedOptions)
  const { build } = left
  const { names, graph } = build
  const name = names.orGenerate(options?.name, 'KTABLE-MERGE-')
  const { leftOuter, rightOuter, joiner } = shape
  if (leftOuter) left.model.enableOldValues(true)
  if (rightOuter) right.model.enableOldValues(true)
  const thisName = names.suffixOrGenerate(options?.name, '-join-this', 'KTABLE-JOINTHIS-')
  const otherName = names.suffixOrGenerate(options?.name, '-join-other', 'KTABLE-JOINOTHER-')
  const settings = settingsOf(method, options?.store)
  const keeps = options?.store !== undefined && settings.name !== undefined
  if (!keeps) refuseUnkept(name, options)
  const key = left.key.serde === undefined && left.key.windowed === undefined ? right.key : left.key
  const definition = keeps
    ? tableStore({ name: settings.name as string, key, valueSerde: undefined, settings, emit: options.emit })
    : undefined
  const model = new JoinTable(left.model, right.model, definition, shape)
  const leftGetter = left.model.getter()
  const rightGetter = right.model.getter()
  let leftVersioned = false
  let rightVersioned = false
  const write = (builder: PhysicalBuilder): void => {
    const { sendOldValues } = model
    const common = { op: 'tableJoin', leftOuter, rightOuter, joiner, sendOldValues } as const
    builder.addProcessor(thisName, () => ({ ...common, side: 'left', other: rightGetter, versioned: leftVersioned }), [
      left.name,
    ])
    builder.addProcessor(
      otherName,
      () => ({ ...common, side: 'right', other: leftGetter, versioned: rightVersioned }),
      [right.name],
    )
    builder.addProcessor(name, () => ({ op: 'tableJoinMerge', ...model.output() }), [thisName, otherName])
    builder.connect(thisName, ...getterStores(rightGetter))
    builder.connect(otherName, ...getterStores(leftGetter))
    if (definition) builder.addStore(definition, name)
  }
  const node = new GraphNode(name, {
    outputVersioned: definition?.kind === 'versioned',
    onVersionedParent: (parent) => {
      if (parent === left.node) leftVersioned = true
      if (parent === right.node) rightVersioned = true
    },
    write,
  })
  graph.add([left.node, right.node], node)
  return { build, name, node, key, value: settings.value as AnySerde | undefined, model }
}
