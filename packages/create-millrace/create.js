#!/usr/bin/env node
/** `npm create millrace`: makes a project. Plain JavaScript, because it runs from `node_modules`. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'

const own = import.meta.dirname
const templates = {
  stream: 'orders by customer: filter, re-key, add up',
  windows: 'late flights by airport and hour, when the hour is over',
  avro: 'payments in Avro, with a schema registry in the process while you develop',
  'hot-standby': 'readings by sensor, on pods that take over from each other',
}
/** In the manifests and dashboards, in place of the project's own name. */
const placeholder = 'millrace-app'
/** npm leaves files of these names out of a package, so the templates call them otherwise. */
const dotted = { gitignore: '.gitignore', dockerignore: '.dockerignore' }

class Slip extends Error {}

/** @returns {{ folder?: string, template?: string, yes: boolean, install: boolean, millrace: string }} */
function readArguments() {
  const options = {
    template: { type: 'string', short: 't' },
    yes: { type: 'boolean', short: 'y', default: false },
    install: { type: 'boolean', default: true },
    millrace: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  }
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true, allowNegative: true })
    if (values.help) return { ...values, help: true }
    if (positionals.length > 1) throw new Slip(`One folder is made at a time, not ${positionals.join(', ')}.`)
    return { ...values, folder: positionals[0], millrace: values.millrace ?? `^${ownVersion()}` }
  } catch (error) {
    if (error.code?.startsWith('ERR_PARSE_ARGS')) throw new Slip(error.message)
    throw error
  }
}

/** Both packages are released together, under one version. */
function ownVersion() {
  return JSON.parse(readFileSync(join(own, 'package.json'), 'utf8')).version
}

async function ask(question, fallback) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(`${question} (${fallback}) `)).trim() || fallback
  } finally {
    terminal.close()
  }
}

async function choose(args) {
  const asks = !args.yes && process.stdin.isTTY
  const folder = args.folder ?? (asks ? await ask('Folder', 'my-stream') : 'my-stream')
  const template = args.template ?? (asks ? await ask(`Template: ${Object.keys(templates).join(', ')}`, 'stream') : 'stream')
  if (!Object.hasOwn(templates, template)) {
    throw new Slip(`There is no template '${template}'; name one of ${Object.keys(templates).join(', ')}.`)
  }
  return { folder: resolve(folder), template }
}

/** A name that npm, Kubernetes and Kafka all take. */
function projectName(folder) {
  const name = basename(folder)
    // Letters with accents become the letter and its accents, of which the letter stays.
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 50)
    .replace(/-+$/, '')
  return name || 'my-stream'
}

function filesBelow(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

function write(folder, template, millrace) {
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Slip(`The folder ${folder} is not empty.`)
  const name = projectName(folder)
  mkdirSync(folder, { recursive: true })
  // In a checkout the manifests lie beside the packages; packing takes them along.
  const deploy = [join(own, 'deploy'), join(own, '..', '..', 'deploy')].find((path) => existsSync(path))
  cpSync(deploy, join(folder, 'deploy'), { recursive: true })
  for (const part of ['base', template]) cpSync(join(own, 'templates', part), folder, { recursive: true })
  // Neither kustomize nor helm reads a file outside of its folder: the cluster's configuration begins as the project's own.
  for (const place of ['kubernetes/base', 'helm']) cpSync(join(folder, 'engine.yaml'), join(folder, 'deploy', place, 'engine.yaml'))
  for (const [from, to] of Object.entries(dotted)) renameSync(join(folder, from), join(folder, to))
  for (const file of filesBelow(folder)) {
    const text = readFileSync(file, 'utf8')
    const own = text.replaceAll(placeholder, name)
    if (own !== text) writeFileSync(file, own)
  }
  mergeManifest(folder, millrace)
}

/** What a template adds to the manifest of all. */
function mergeManifest(folder, millrace) {
  const file = join(folder, 'package.json')
  const additions = join(folder, 'package.add.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  const added = JSON.parse(readFileSync(additions, 'utf8'))
  for (const [part, entries] of Object.entries(added)) manifest[part] = { ...manifest[part], ...entries }
  manifest.dependencies.millrace = millrace
  writeFileSync(file, `${JSON.stringify(manifest, undefined, 2)}\n`)
  rmSync(additions)
}

/** The way into the folder from where the command was given; none where that is the folder itself. */
function changeTo(folder) {
  const below = relative(process.cwd(), folder)
  if (below === '') return []
  const path = below.startsWith('..') ? folder : below
  return ['  cd ' + (/^[\w./\\:@+-]+$/.test(path) ? path : `"${path}"`)]
}

async function main() {
  const args = readArguments()
  if (args.help) {
    const lines = Object.entries(templates).map(([name, about]) => `  ${name.padEnd(12)} ${about}`)
    process.stdout.write(`npm create millrace [folder] -- [--template name] [--yes] [--no-install]\n\n${lines.join('\n')}\n`)
    return 0
  }
  const { folder, template } = await choose(args)
  write(folder, template, args.millrace)
  process.stdout.write(`Made ${folder} from the template ${template}.\n`)
  if (args.install) {
    const { status } = spawnSync('npm', ['install'], { cwd: folder, stdio: 'inherit', shell: process.platform === 'win32' })
    if (status !== 0) throw new Slip('`npm install` has failed; the project is there, install again when the cause is gone.')
  }
  process.stdout.write(['', 'Next:', ...changeTo(folder), '  npm test', '  npm run dev', ''].join('\n'))
  return 0
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof Slip)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}
