/**
 * A real Chromium: the one that `CHROMIUM` names, that of the system, or the one inside of the package
 * `@sparticuz/chromium`, unpacked once below `.cache`. Where none runs, tests are skipped with the reason; where a Kafka
 * is required, a browser is too, and it is a failure.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress } from 'node:zlib'
import { type Browser, chromium } from 'playwright-core'
import { repositoryRoot } from '../../groups.ts'

const ofSystem = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const flags = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-pings', '--no-default-browser-check']

interface Found {
  readonly path: string
  readonly env: Readonly<Record<string, string>>
}

/** A sentence where there is none. */
export async function startBrowser(): Promise<Browser | string> {
  const reasons: string[] = []
  for (const find of [() => process.env.CHROMIUM, ...ofSystem.map((path) => () => path)]) {
    const path = find()
    if (path === undefined || !existsSync(path)) continue
    const browser = await launched({ path, env: {} })
    if (typeof browser !== 'string') return browser
    reasons.push(browser)
  }
  try {
    const browser = await launched(await ofPackage())
    if (typeof browser !== 'string') return browser
    reasons.push(browser)
  } catch (error) {
    reasons.push(String(error))
  }
  const sentence = `no Chromium runs on this machine; CHROMIUM names one: ${reasons.join('; ')}`
  if ((process.env.REQUIRE_BROWSER ?? process.env.REQUIRE_KAFKA) === '1') throw new Error(sentence)
  return sentence
}

async function launched({ path, env }: Found): Promise<Browser | string> {
  const inherited = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined)
  try {
    return await chromium.launch({
      executablePath: path,
      args: flags,
      env: { ...Object.fromEntries(inherited), ...env },
      timeout: 120_000,
    })
  } catch (error) {
    return `${path}: ${String(error).split('\n')[0]}`
  }
}

/** The package holds the program and its libraries as Brotli files, for x64 Linux. */
async function ofPackage(): Promise<Found> {
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('the package is for Linux on x64')
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium')
  const home = dirname(dirname(entry))
  const bin = join(home, 'bin')
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string }
  const folder = join(repositoryRoot, '.cache', `chromium-${version}`)
  if (!existsSync(join(folder, 'chromium'))) await unpack(bin, folder)
  const fonts = join(folder, 'fonts')
  writeFileSync(join(fonts, 'fonts.conf'), fontsOf(fonts))
  const libraries = [join(folder, 'al2023', 'lib'), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':')
  return {
    path: join(folder, 'chromium'),
    env: { FONTCONFIG_PATH: fonts, LD_LIBRARY_PATH: libraries },
  }
}

/** The one that comes along names folders of another system. */
function fontsOf(folder: string): string {
  const head = '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">'
  return `${head}<fontconfig><dir>${folder}</dir><cachedir>${join(folder, 'cache')}</cachedir></fontconfig>\n`
}

/** Under another name first: a test that is ended in the middle leaves nothing that looks whole. */
async function unpack(bin: string, folder: string): Promise<void> {
  const part = `${folder}-${process.pid}`
  mkdirSync(part, { recursive: true })
  await inflate(join(bin, 'chromium.br'), join(part, 'chromium'))
  chmodSync(join(part, 'chromium'), 0o755)
  for (const name of ['al2023', 'fonts']) {
    const tar = join(part, `${name}.tar`)
    await inflate(join(bin, `${name}.tar.br`), tar)
    mkdirSync(join(part, name))
    execFileSync('tar', ['-xf', tar, '-C', join(part, name)])
    rmSync(tar)
  }
  try {
    renameSync(part, folder)
  } catch (error) {
    // Another test was faster.
    rmSync(part, { recursive: true })
    if (!existsSync(folder)) throw error
  }
}

async function inflate(from: string, to: string): Promise<void> {
  await pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to))
}
