/** What the package offers: each entry point with its exports, as the compiler declares them. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { type Declaration, declarationsOf, statementsOf } from './declarations.ts'

const root = join(import.meta.dirname, '..', '..')

export interface Export {
  readonly declaration: Declaration
  /** The source file that declares it, relative to the repository. */
  readonly file: string
}

export interface EntryPoint {
  /** `millrace`, `millrace/runtime`, `millrace/testing`. */
  readonly specifier: string
  readonly doc: string
  readonly exports: readonly Export[]
}

/** Compiles the declarations into a folder of their own and reads them. Takes some seconds. */
export function readSurface(): EntryPoint[] {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-api-'))
  try {
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const args = [compiler, '-p', join(root, 'tsconfig.build.json'), '--emitDeclarationOnly', '--outDir', folder]
    execFileSync(process.execPath, args, { stdio: 'inherit', cwd: root })
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string>>
    }
    const reader = new Reader(folder)
    return Object.entries(exports)
      .filter(([, path]) => path.endsWith('.ts'))
      .map(([name, path]) => reader.entryPoint(posix.join('millrace', name), posix.normalize(path)))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface ReExport {
  readonly name: string
  readonly from: string
}

/** What a module passes on from others, by name. */
function reExports(text: string): ReExport[] {
  return statementsOf(text).flatMap((statement) => {
    const match = /^export (?:type )?\{([^}]*)\} from '([^']+)'/.exec(statement.text)
    if (match === null) return []
    const names = (match[1] ?? '').split(',').map((name) => name.trim().replace(/^type /, ''))
    return names.filter((name) => name !== '').map((name) => ({ name, from: match[2] ?? '' }))
  })
}

class Reader {
  readonly #folder: string
  readonly #modules = new Map<string, { text: string; declarations: ReadonlyMap<string, Declaration> }>()

  constructor(folder: string) {
    this.#folder = folder
  }

  entryPoint(specifier: string, file: string): EntryPoint {
    const { text } = this.#module(file)
    const source = readFileSync(join(root, file), 'utf8')
    const doc = /^\/\*\*([\s\S]*?)\*\//.exec(source)?.[1] ?? ''
    return {
      specifier,
      doc: doc.replaceAll(/^\s*\* ?/gm, '').trim(),
      exports: reExports(text).map(({ name, from }) => this.#resolve(name, posix.join(posix.dirname(file), from))),
    }
  }

  #resolve(name: string, file: string): Export {
    const { text, declarations } = this.#module(file)
    const declaration = declarations.get(name)
    if (declaration !== undefined) return { declaration, file }
    const passedOn = reExports(text).find((candidate) => candidate.name === name)
    if (passedOn === undefined) throw new Error(`${file} declares no ${name}`)
    return this.#resolve(name, posix.join(posix.dirname(file), passedOn.from))
  }

  #module(file: string): { text: string; declarations: ReadonlyMap<string, Declaration> } {
    const known = this.#modules.get(file)
    if (known !== undefined) return known
    const text = readFileSync(join(this.#folder, file.replace(/\.ts$/, '.d.ts')), 'utf8')
    const module = { text, declarations: declarationsOf(text) }
    this.#modules.set(file, module)
    return module
  }
}
