/** Reads the repository as text, for the rules that no linter knows. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { filesBelow, repositoryRoot } from '../groups.ts'

export interface SourceFile {
  /** Relative to the repository, with slashes. */
  readonly path: string
  readonly text: string
  /** The text with every comment blanked out, so that line numbers stay. */
  readonly code: string
}

export interface Import {
  readonly specifier: string
  readonly line: number
  readonly typeOnly: boolean
}

/** Blanks comments; strings and templates stay as they are. */
export function withoutComments(text: string): string {
  const token = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g
  return text.replace(token, (match) => (match.startsWith('/') ? match.replace(/[^\n]/g, ' ') : match))
}

/** Blanks comments and the insides of plain strings: what is left is code. */
export function codeOnly(text: string): string {
  return withoutComments(text).replace(
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g,
    (match) => `${match[0]}${' '.repeat(match.length - 2)}${match[0]}`,
  )
}

export function readSource(path: string): SourceFile {
  const text = readFileSync(join(repositoryRoot, path), 'utf8')
  return { path, text, code: withoutComments(text) }
}

export function sourcesBelow(folder: string): SourceFile[] {
  return filesBelow(folder, '.ts').map(readSource)
}

export function lineAt(text: string, index: number): number {
  let line = 1
  for (let i = 0; i < index; i++) if (text.charCodeAt(i) === 10) line++
  return line
}

export function importsOf(file: SourceFile): Import[] {
  const statement =
    /(?:^|[;\n])\s*(?:import|export)\s+(type\s+)?(?:[^'";]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\s*\(\s*['"]([^'"]+)['"]|new URL\(\s*['"](\.[^'"]+\.ts)['"]/g
  const found: Import[] = []
  for (const match of file.code.matchAll(statement)) {
    const specifier = match[2] ?? match[3] ?? match[4]
    if (specifier === undefined) continue
    found.push({ specifier, line: lineAt(file.code, match.index + match[0].length), typeOnly: match[1] !== undefined })
  }
  return found
}

/** The repository path that a relative specifier names. */
export function resolveImport(from: string, specifier: string): string | undefined {
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : undefined
}

/** Every text file that git tracks or would track. */
export function repositoryFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return listed
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(repositoryRoot, path)))
    .sort()
}

/** All places where a pattern occurs, as `path:line`, each with what stands there. */
export function occurrences(file: SourceFile, text: string, pattern: RegExp): string[] {
  const found: string[] = []
  for (const match of text.matchAll(new RegExp(pattern.source, `${pattern.flags.replace('g', '')}g`))) {
    found.push(`${file.path}:${lineAt(text, match.index)} has '${match[0].trim()}'`)
  }
  return found
}
