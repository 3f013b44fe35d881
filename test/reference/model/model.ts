/**
 * The reference model: a program, in the form of the recorded scenarios, worked off one record after the other, each with
 * all that follows from it, on one thread, without partitions, batches or stores. It is written from the documents and
 * the recordings, knows nothing of `src`, and is naive on purpose.
 */
import { type Expr, type Json, jsonOf } from '../../../conformance/expr.ts'
import type { WindowNode } from '../../../conformance/scenario.ts'
import type { ProgramNode } from '../program.ts'
import { foreignKeyJoin, StreamJoin, TableLookUp } from './joins.ts'
import {
  call,
  type Failed,
  HandOver,
  type Rec,
  type Row,
  Rows,
  Step,
  type Table,
  type Told,
  type Update,
  Unsupported,
  type Vertex,
  World,
} from './parts.ts'
import { processor } from './processors.ts'
import { DerivedTable, SourceTable, Suppressed, TableAggregate, TableGroups, TableJoin } from './tables.ts'
import { Aggregate, type Fold, Sessions, SlidingWindows, TimeWindows } from './windows.ts'

type Handle =
  | { readonly is: 'stream'; readonly vertex: Vertex; readonly rekeyed: boolean; readonly maxOutOfOrderness: number }
  | { readonly is: 'table'; readonly table: Table; readonly window: WindowNode | undefined }
  | { readonly is: 'global'; readonly rows: Rows }
  | { readonly is: 'grouped'; readonly stream: Stream; readonly window?: WindowNode; readonly onClose?: boolean }
  | { readonly is: 'groupedTable'; readonly groups: Vertex }

type Stream = Extract<Handle, { is: 'stream' }>
type Grouped = Extract<Handle, { is: 'grouped' }>

interface Source {
  readonly topics: readonly string[]
  readonly take: (rec: Rec) => void
  readonly timestamp: Expr | undefined
  readonly isGlobal: boolean
}

export interface Input {
  readonly topic: string
  readonly key: Json
  readonly value: Json
  readonly timestamp: number
  /** Where it lies in its topic. */
  readonly partition?: number
  readonly offset?: number
  readonly headers?: ReadonlyArray<readonly [string, string]>
}

const stream = (vertex: Vertex, rekeyed: boolean): Stream => ({ is: 'stream', vertex, rekeyed, maxOutOfOrderness: 0 })

export class Model {
  readonly #world: World
  readonly #handles = new Map<string, Handle>()
  readonly #sources: Source[] = []
  /** By stream: what it is behind its hand-over to the first join that needs equal keys together. */
  readonly #joined = new Map<Vertex, HandOver>()

  constructor(nodes: readonly ProgramNode[]) {
    this.#world = new World()
    for (const node of nodes) {
      const handle = this.#make(node)
      if (handle) this.#handles.set(node.id, handle)
    }
  }

  get outputs(): readonly Told[] {
    return this.#world.outputs
  }

  /** Records and pairs that came too late. */
  get late(): number {
    return this.#world.late
  }

  /** Functions that failed, in their order. */
  get failed(): readonly Failed[] {
    return this.#world.failed
  }

  /** Works off a record that carries this watermark. */
  take(input: Input, watermark: number): void {
    this.#feed(input, watermark)
    this.#world.drain()
  }

  /** Fires what falls due between records. */
  advance(watermark: number): void {
    this.#world.advance(watermark)
  }

  /** Event time of an input, where a source's function gives it. */
  timeOf({ topic, key, value, timestamp }: Input): number {
    const extract = this.#sources.find(({ topics }) => topics.includes(topic))?.timestamp
    const own = extract === undefined ? timestamp : call(extract, { value, key })
    return Number.isInteger(own) ? (own as number) : timestamp
  }

  #feed(input: Input, watermark: number): void {
    const { topic, key, value, partition, offset } = input
    const at = this.timeOf(input)
    const cause =
      partition === undefined || offset === undefined
        ? undefined
        : { topic, partition, offset, came: { key, value, at } }
    for (const { topics, take, isGlobal } of this.#sources) {
      if (at < 0 || !topics.includes(topic)) continue
      take({
        key,
        value,
        at,
        cause,
        headers: input.headers?.[0]?.[1],
        watermark: isGlobal ? Number.NEGATIVE_INFINITY : watermark,
      })
    }
  }

  #from(node: ProgramNode, index = 0): Handle {
    const id = typeof node.from === 'string' ? node.from : node.from?.[index]
    const found = this.#handles.get(id ?? '')
    if (found === undefined) throw new Unsupported(`${node.id} follows ${id}`)
    return found
  }

  #stream(node: ProgramNode, index = 0): Stream {
    const found = this.#from(node, index)
    if (found.is !== 'stream') throw new Unsupported(`${node.id} follows no stream`)
    return found
  }

  #table(node: ProgramNode, index = 0): Table {
    const found = this.#from(node, index)
    if (found.is !== 'table') throw new Unsupported(`${node.id} follows no table`)
    return found.table
  }

  #step(parent: Vertex, take: (rec: Rec, pass: (rec: Rec) => void) => void): Step {
    return new Step(this.#world, [parent], take)
  }

  /** The stream with equal keys together. */
  #together({ vertex, rekeyed }: Stream, keepsNull = false): Vertex {
    return rekeyed ? new HandOver(this.#world, vertex, keepsNull) : vertex
  }

  /** As above, for joins: those of one stream take what was handed over for the first of them. */
  #joinable(from: Stream, keepsNull: boolean): Vertex {
    const known = this.#joined.get(from.vertex)
    if (known !== undefined) {
      known.keepsNull ||= keepsNull
      return known
    }
    const together = this.#together(from, keepsNull)
    if (together instanceof HandOver) this.#joined.set(from.vertex, together)
    return together
  }

  #source(topics: readonly string[], vertex: Vertex, timestamp: Expr | undefined, isGlobal = false): void {
    this.#sources.push({ topics, timestamp, isGlobal, take: (rec) => this.#world.queue.push(() => vertex.take(rec)) })
  }

  #make(node: ProgramNode): Handle | undefined {
    const world = this.#world
    switch (node.op) {
      case 'stream': {
        if (node.pattern !== undefined) throw new Unsupported('a pattern')
        const vertex = new Step(world, [], (rec, pass) => pass(rec))
        this.#source(node.topics ?? [node.topic ?? ''], vertex, node.timestamp)
        return stream(vertex, false)
      }
      case 'table': {
        if (node.store?.type === 'versioned') throw new Unsupported('versions')
        const source = new Step(world, [], (rec, pass) => pass(rec))
        this.#source([node.topic ?? ''], source, undefined)
        return {
          is: 'table',
          table: new SourceTable(world, source, node.store?.name !== undefined),
          window: undefined,
        }
      }
      case 'globalTable': {
        const rows = new Rows()
        const put = (rec: Rec): void => {
          if (rec.key !== null) rows.put(rec.key, rec.value as Json, rec.at)
        }
        this.#source([node.topic ?? ''], new Step(world, [], put), undefined, true)
        return { is: 'global', rows }
      }
      case 'join':
      case 'leftJoin':
      case 'outerJoin':
        return this.#join(node)
      case 'groupBy':
      case 'groupByKey':
        return this.#group(node)
      case 'windowedBy': {
        const grouped = this.#from(node) as Grouped
        return { ...grouped, window: node.window as WindowNode, onClose: node.emit === 'onWindowClose' }
      }
      case 'count':
      case 'reduce':
      case 'aggregate':
        return this.#aggregate(node)
      default:
        return this.#from(node).is === 'table' ? this.#onTable(node) : this.#onStream(node, this.#stream(node))
    }
  }

  #onStream(node: ProgramNode, from: Stream): Handle | undefined {
    const { vertex, rekeyed } = from
    const same = (take: (rec: Rec, pass: (rec: Rec) => void) => void): Stream =>
      stream(this.#step(vertex, take), rekeyed)
    const env = (rec: Rec): { value: unknown; key: Json } => ({ value: rec.value, key: rec.key })
    const list = (rec: Rec): readonly Json[] => {
      const items = call(node.list, env(rec))
      return Array.isArray(items) ? (items as readonly Json[]) : []
    }
    switch (node.op) {
      case 'to':
        this.#sink(node, vertex)
        return undefined
      case 'filter':
      case 'filterNot':
        return same((rec, pass) => {
          if ((call(node.pred, env(rec)) === true) === (node.op === 'filter')) pass(rec)
        })
      case 'mapValues':
        return same((rec, pass) => pass({ ...rec, value: call(node.value, env(rec)) }))
      case 'peek':
      case 'foreach':
        return same((rec, pass) => pass(rec))
      case 'flatMapValues':
        return same((rec, pass) => {
          for (const value of list(rec)) pass({ ...rec, value })
        })
      case 'map':
      case 'selectKey': {
        const mapped = (rec: Rec): unknown => (node.op === 'map' ? call(node.value, env(rec)) : rec.value)
        return {
          ...same((rec, pass) => pass({ ...rec, key: call(node.key, env(rec)), value: mapped(rec) })),
          rekeyed: true,
        }
      }
      case 'flatMap': {
        const pair = (item: Json, rec: Rec): Rec => {
          const inside = { value: item, key: rec.key }
          return { ...rec, key: call(node.key, inside), value: call(node.value, inside) }
        }
        return {
          ...same((rec, pass) => {
            for (const item of list(rec)) pass(pair(item, rec))
          }),
          rekeyed: true,
        }
      }
      case 'merge': {
        const other = this.#stream(node, 1)
        const both = new Step(this.#world, [vertex, other.vertex], (rec, pass) => pass(rec))
        return stream(both, rekeyed || other.rekeyed)
      }
      case 'split':
        this.#split(node, from)
        return undefined
      case 'repartition':
        return stream(new HandOver(this.#world, vertex), false)
      case 'toTable': {
        if (node.store?.type === 'versioned') throw new Unsupported('versions')
        const named = node.store?.name !== undefined
        return { is: 'table', table: new SourceTable(this.#world, this.#together(from), named), window: undefined }
      }
      case 'process':
      case 'processValues':
        return stream(processor(this.#world, vertex, node), rekeyed || node.op === 'process')
      default:
        throw new Unsupported(node.op)
    }
  }

  #sink(node: ProgramNode, vertex: Vertex): void {
    const { topicFrom } = node
    this.#step(vertex, (rec) => {
      const topic = topicFrom ? (call(topicFrom, { value: rec.value, key: rec.key }) as string) : (node.topic ?? '')
      const told = { topic, key: jsonOf(rec.key), value: jsonOf(rec.value), timestamp: rec.at }
      this.#world.outputs.push({ ...told, headers: rec.headers })
      this.#feed(told, rec.watermark)
    })
  }

  #split(node: ProgramNode, { vertex, rekeyed }: Stream): void {
    const branches: Array<{ id: string; pred: Expr | undefined }> = [...(node.branches ?? [])]
    if (node.default) branches.push({ id: node.default.id, pred: undefined })
    const ends = branches.map(({ id }) => {
      const end = new Step(this.#world, [], (rec, pass) => pass(rec))
      this.#handles.set(id, stream(end, rekeyed))
      return end
    })
    this.#step(vertex, (rec) => {
      const env = { value: rec.value, key: rec.key }
      ends[branches.findIndex(({ pred }) => pred === undefined || call(pred, env) === true)]?.take(rec)
    })
  }

  #group(node: ProgramNode): Handle {
    const from = this.#from(node)
    if (from.is === 'table') {
      const group = (value: Json, key: Json): readonly [Json, Json] => [
        call(node.key, { value, key }),
        call(node.value, { value, key }),
      ]
      return { is: 'groupedTable', groups: new TableGroups(this.#world, from.table, group) }
    }
    const source = this.#stream(node)
    if (node.op === 'groupByKey') return { is: 'grouped', stream: source }
    const rekeyed = this.#step(source.vertex, (rec, pass) =>
      pass({ ...rec, key: call(node.key, { value: rec.value, key: rec.key }) }),
    )
    return { is: 'grouped', stream: stream(rekeyed, true) }
  }

  #aggregate(node: ProgramNode): Handle {
    const world = this.#world
    const from = this.#from(node)
    if (node.store?.type === 'versioned') throw new Unsupported('versions')
    if (from.is === 'groupedTable') {
      return { is: 'table', table: new TableAggregate(world, from.groups, tableFolds(node)), window: undefined }
    }
    if (from.is !== 'grouped') throw new Unsupported('a cogroup')
    const { window, onClose = false } = from
    const parent = this.#together(from.stream)
    const fold = foldOf(node)
    return { is: 'table', table: windowed(world, parent, fold, window, onClose), window }
  }

  #onTable(node: ProgramNode): Handle {
    const world = this.#world
    const table = this.#table(node)
    const { window } = this.#from(node) as Extract<Handle, { is: 'table' }>
    if (node.store?.type === 'versioned') throw new Unsupported('versions')
    const named = node.store?.name !== undefined
    switch (node.op) {
      case 'filter':
      case 'filterNot': {
        const passes = (value: Json, key: Json): Json =>
          (call(node.pred, { value, key }) === true) === (node.op === 'filter') ? value : null
        return { is: 'table', table: new DerivedTable(world, table, passes, true, named), window }
      }
      case 'mapValues': {
        const map = (value: Json, key: Json): Json => call(node.value, { value, key })
        return { is: 'table', table: new DerivedTable(world, table, map, false, named), window }
      }
      case 'toStream': {
        const update = (rec: Rec): Rec => ({ ...rec, value: (rec.value as Update).now })
        const rekey = (rec: Rec): Rec =>
          node.key ? { ...rec, key: call(node.key, { value: rec.value, key: rec.key }) } : rec
        const vertex = this.#step(table.vertex, (rec, pass) => pass(rekey(update(rec))))
        return stream(vertex, node.key !== undefined)
      }
      case 'suppress': {
        if (node.maxRecords !== undefined) throw new Unsupported('a bounded buffer')
        const final = node.until === 'windowCloses'
        const delay = final ? closing(window) : (node.ms ?? 0)
        return {
          is: 'table',
          table: new Suppressed(world, table, { final, delay }, (key) => JSON.stringify(key)),
          window,
        }
      }
      default:
        throw new Unsupported(node.op)
    }
  }

  #join(node: ProgramNode): Handle {
    const world = this.#world
    const left = this.#from(node)
    const right = this.#from(node, 1)
    const joiner = (l: Json, r: Json): Json => call(node.joiner, { left: l, right: r })
    const leftOuter = node.op !== 'join'
    const rightOuter = node.op === 'outerJoin'
    if (left.is === 'table') {
      const table = this.#table(node, 1)
      const { foreignKey } = node
      const named = node.store?.name !== undefined
      if (foreignKey === undefined) {
        const shape = { joiner, leftOuter, rightOuter }
        return { is: 'table', table: new TableJoin(world, left.table, table, shape, named), window: left.window }
      }
      const on = (value: Json, key: Json): Json => call(foreignKey, { value, key })
      const result = foreignKeyJoin(world, left.table, table, { on, joiner, leftOuter }, (vertex) => {
        return new SourceTable(world, vertex, named)
      })
      return { is: 'table', table: result, window: undefined }
    }
    if (node.grace !== undefined) throw new Unsupported('a join that waits')
    const mine = this.#stream(node)
    if (right.is === 'global') {
      const on = (value: Json, key: Json): Json => call(node.key, { value, key })
      const shape = { row: (key: Json): Row | undefined => right.rows.get(key), joiner, leftOuter, on }
      return stream(new TableLookUp(world, mine.vertex, undefined, shape), mine.rekeyed)
    }
    if (right.is === 'table') {
      const { table } = right
      table.keep()
      const shape = { row: (key: Json): Row | undefined => table.row(key), joiner, leftOuter }
      return stream(new TableLookUp(world, this.#joinable(mine, leftOuter), table.vertex, shape), false)
    }
    const { before, after, grace = 0 } = node.window as { before: number; after: number; grace?: number }
    const shape = { before, after, grace, joiner, leftOuter, rightOuter }
    const other = this.#stream(node, 1)
    return stream(
      new StreamJoin(world, this.#joinable(mine, leftOuter), this.#joinable(other, leftOuter), shape),
      false,
    )
  }
}

function closing(window: WindowNode | undefined): number {
  if (window === undefined) throw new Unsupported('suppress until a window closes, without windows')
  const { type, grace = 0, gap = 0 } = window
  if (type === 'session') return grace + gap + 1
  return type === 'sliding' ? grace + 1 : grace
}

function windowed(world: World, parent: Vertex, fold: Fold, window: WindowNode | undefined, onClose: boolean): Table {
  if (window === undefined) return new Aggregate(world, parent, fold)
  switch (window.type) {
    case 'session':
      return new Sessions(world, parent, fold, window, onClose)
    case 'sliding':
      return new SlidingWindows(world, parent, fold, window, onClose)
    default:
      return new TimeWindows(world, parent, fold, window, onClose)
  }
}

function foldOf(node: ProgramNode): Fold {
  if (node.op === 'count') {
    const sum = (a: Json, b: Json): Json => (a as number) + (b as number)
    return { init: () => 0, fold: (count) => sum(count, 1), merge: sum }
  }
  if (node.op === 'reduce') {
    const reduce = (agg: Json, value: Json): Json => call(node.reduce, { agg, value })
    return { init: undefined, fold: reduce, merge: reduce }
  }
  const { merge } = node
  return {
    init: () => call(node.init, {}),
    fold: (agg, value, key) => call(node.agg, { agg, value, key }),
    merge: (left, right, key) => (merge ? call(merge, { left, right, key }) : null),
  }
}

function tableFolds(node: ProgramNode): ConstructorParameters<typeof TableAggregate>[2] {
  if (node.op === 'count') {
    const by = (n: number) => (count: Json) => (count as number) + n
    return { init: () => 0, add: by(1), subtract: by(-1) }
  }
  const fold = (expr: Expr | undefined) => (agg: Json, value: Json, key: Json) =>
    call(expr, node.op === 'reduce' ? { agg, value } : { agg, value, key })
  return {
    init: node.op === 'reduce' ? undefined : () => call(node.init, {}),
    add: fold(node.add),
    subtract: fold(node.sub),
  }
}
