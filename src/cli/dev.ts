/** `millrace dev`: runs an application as a process of its own, and starts it anew whenever one of its files changes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, type FSWatcher, readdirSync, rmSync, watch } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { EngineError } from '../base/errors.ts'
import { exitCodes } from './exit-codes.ts'
import { onStopSignal } from './signals.ts'

export interface DevArguments {
  readonly config?: string
  readonly set: readonly string[]
  readonly feed: readonly string[]
  readonly print: readonly string[]
  readonly feedRate?: number
  readonly data: string
  readonly fresh: boolean
  readonly open: boolean
}

/** What the process of the application is told: that somebody develops it, and whether a browser is to be opened. */
const developed = 'MILLRACE_DEV'

/** Opens an address in a browser, by platform. */
const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // What stands first behind `start` is a title.
  win32: ['cmd', '/c', 'start', ''],
}

/** Editors write a file in several steps. */
const settleMs = 150
/** What an application is made of; its data is not. */
const watchedEndings = new Set(['.ts', '.mts', '.js', '.mjs', '.json', '.yaml', '.yml', '.avsc', '.proto'])
const passedFolders = new Set(['node_modules', 'dist'])

/** Runs until it is told to end. */
export async function develop(application: string, args: DevArguments): Promise<number> {
  const file = resolve(application)
  if (!existsSync(file)) throw new EngineError('USAGE', `The application '${application}' does not exist.`)
  const data = resolve(args.data)
  if (args.fresh) await emptied(data)
  const session = new Session(runArguments(file, data, args), args.data, args.open)
  const watched = new WatchedFolders(projectOf(file), (path) => session.changed(path))
  const signals = onStopSignal((signal) => session.stop(signal === 'SIGINT' && process.stdin.isTTY))
  try {
    await session.toTheEnd()
    return exitCodes.clean
  } finally {
    signals.dispose()
    watched.close()
  }
}

/** Of a folder that somebody named, nothing else that lies there is taken away, nor what another process is at. */
async function emptied(data: string): Promise<void> {
  const broker = join(data, 'broker')
  if (existsSync(broker)) {
    const { lockFolder } = await import('../broker/embedded/folder-lock.ts')
    lockFolder(broker)()
  }
  for (const folder of [broker, join(data, 'state')]) rmSync(folder, { recursive: true, force: true })
}

/** Where somebody develops the application: says where its console is, and opens it once where somebody sits before a screen. */
export function showConsole(url: string, print: (line: string) => void): void {
  const how = process.env[developed]
  if (how === undefined) return
  const console = `${url}/console/`
  print(`millrace dev: the console is at ${console}`)
  const { CI, DISPLAY, WAYLAND_DISPLAY } = process.env
  const hasScreen = process.platform in openers || DISPLAY !== undefined || WAYLAND_DISPLAY !== undefined
  if (how !== 'opens' || !process.stderr.isTTY || CI !== undefined || !hasScreen) return
  const [command, ...words] = openers[process.platform] ?? ['xdg-open']
  const browser = spawn(command, [...words, console], { stdio: 'ignore', detached: true })
  // Without a browser there is the line above.
  browser.once('error', () => undefined)
  browser.unref()
}

/** What was given stands last: it is stronger than what this verb chooses. */
function runArguments(file: string, data: string, args: DevArguments): string[] {
  const chosen = [
    `broker.bootstrap-servers=embedded:${join(data, 'broker')}`,
    `engine.state.dir=${join(data, 'state')}`,
  ]
  return [
    'run',
    file,
    ...(args.config === undefined ? [] : ['--config', args.config]),
    ...[...chosen, ...args.set].flatMap((setting) => ['--set', setting]),
    ...args.feed.flatMap((feed) => ['--feed', feed]),
    ...args.print.flatMap((topic) => ['--print', topic]),
    ...(args.feedRate === undefined ? [] : ['--feed-rate', String(args.feedRate)]),
  ]
}

/** The folder of the nearest manifest above the application: what it imports of its own lies there. */
function projectOf(file: string): string {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
  }
  return dirname(file)
}

function say(message: string): void {
  process.stderr.write(`millrace dev: ${message}\n`)
}

/** One process after the other. */
class Session {
  readonly #args: readonly string[]
  readonly #data: string
  #opens: boolean
  readonly #ended = Promise.withResolvers<void>()
  #child: ChildProcess | undefined
  #isStopping = false
  #isChildTold = false
  #change = Promise.withResolvers<void>()
  #settling: NodeJS.Timeout | undefined

  constructor(args: readonly string[], data: string, opens: boolean) {
    this.#args = args
    this.#data = data
    this.#opens = opens
  }

  async toTheEnd(): Promise<void> {
    while (!this.#isStopping) {
      this.#change = Promise.withResolvers()
      const code = await this.#run()
      if (this.#isStopping) return
      if (code !== undefined) {
        const how = code === null ? 'was ended by a signal' : `ended with exit code ${code}`
        say(
          `the application ${how}; it starts again at the next change. Its data is in ${this.#data}, --fresh empties it.`,
        )
        await Promise.race([this.#change.promise, this.#ended.promise])
      }
    }
  }

  changed(path: string): void {
    clearTimeout(this.#settling)
    this.#settling = setTimeout(() => {
      say(`${path} has changed, starting anew`)
      this.#change.resolve()
    }, settleMs)
  }

  /** A terminal tells its interrupt to both processes; a second signal would end the other one at once. */
  stop(isChildTold: boolean): void {
    this.#isStopping = true
    this.#isChildTold = isChildTold
    clearTimeout(this.#settling)
    this.#ended.resolve()
  }

  /** Gives the exit code of a process that ended by itself, undefined for one that was ended here. */
  async #run(): Promise<number | null | undefined> {
    const { promise: exited, resolve: exit } = Promise.withResolvers<number | null>()
    const env = { ...process.env, [developed]: this.#opens ? 'opens' : 'tells' }
    this.#opens = false
    const child = spawn(process.execPath, [process.argv[1] as string, ...this.#args], { stdio: 'inherit', env })
    this.#child = child
    child.once('exit', (code) => exit(code))
    child.once('error', () => exit(null))
    const ended = await Promise.race([exited, this.#change.promise, this.#ended.promise])
    if (ended !== undefined) return ended
    if (!this.#isChildTold) this.#child.kill('SIGTERM')
    await exited
    return undefined
  }
}

/** Watches every folder of a project by itself, without those of dependencies, which may be ten thousand. */
class WatchedFolders {
  readonly #root: string
  readonly #changed: (path: string) => void
  readonly #watchers = new Map<string, FSWatcher>()

  constructor(root: string, changed: (path: string) => void) {
    this.#root = root
    this.#changed = changed
    this.#watch(root)
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close()
  }

  #watch(folder: string): void {
    if (this.#watchers.has(folder)) return
    const watcher = watch(folder, (_event, name) => this.#seen(folder, name))
    // A folder that is removed ends its watch.
    watcher.on('error', () => this.#forget(folder))
    this.#watchers.set(folder, watcher)
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory() && isOwn(entry.name)) this.#watch(join(folder, entry.name))
    }
  }

  #seen(folder: string, name: string | null): void {
    if (name === null || !isOwn(name)) return
    const path = join(folder, name)
    if (watchedEndings.has(extname(name))) this.#changed(path.slice(this.#root.length + 1))
    else if (extname(name) === '') this.#lookInto(path)
  }

  #lookInto(path: string): void {
    try {
      this.#watch(path)
    } catch (error) {
      // No folder, or one that is gone again.
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOTDIR' && code !== 'ENOENT') throw error
      this.#forget(path)
    }
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close()
    this.#watchers.delete(folder)
  }
}

function isOwn(name: string): boolean {
  return !name.startsWith('.') && !passedFolders.has(name)
}
