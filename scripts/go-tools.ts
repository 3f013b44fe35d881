/**
 * `node scripts/go-tools.ts [helm] [kubeconform] [otelcol]`: builds tools that tests use from the Go module proxy, into
 * `$MILLRACE_CACHE/go-tools` (`~/.cache/millrace/go-tools`). Needs Go, and takes minutes the first time. What is built already stays.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.ts'

interface ModuleTool {
  readonly version: string
  /** The command's package. */
  readonly command: string
}

/** A collector of OpenTelemetry with the parts that tests need: it is put together, as `ocb` does. */
interface CollectorTool {
  readonly version: string
  readonly modules: readonly string[]
}

const tools = {
  helm: { version: 'v3.22.0', command: 'helm.sh/helm/v3/cmd/helm' },
  kubeconform: { version: 'v0.8.0', command: 'github.com/yannh/kubeconform/cmd/kubeconform' },
  otelcol: {
    version: 'v0.120.0',
    modules: [
      'go.opentelemetry.io/collector/otelcol@v0.120.0',
      'go.opentelemetry.io/collector/receiver/otlpreceiver@v0.120.0',
      'github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter@v0.120.0',
      'go.opentelemetry.io/collector/confmap/provider/fileprovider@v1.26.0',
    ],
  },
} as const satisfies Record<string, ModuleTool | CollectorTool>

export type GoTool = keyof typeof tools

const folder = join(cacheFolder, 'go-tools')

/** Where the tool is once it is built. */
export function toolPath(name: GoTool): string {
  return join(folder, `${name}-${tools[name].version}`)
}

function go(args: readonly string[], cwd: string, env: Record<string, string> = {}): void {
  execFileSync('go', args, {
    cwd,
    stdio: 'inherit',
    env: { ...process.env, GOFLAGS: '-mod=mod -buildvcs=false', ...env },
  })
}

function build(name: GoTool): void {
  const tool: ModuleTool | CollectorTool = tools[name]
  const work = join(folder, `building-${name}-${process.pid}`)
  mkdirSync(work, { recursive: true })
  try {
    if ('command' in tool) {
      go(['install', `${tool.command}@${tool.version}`], work, { GOBIN: work })
    } else {
      copyFileSync(join(import.meta.dirname, 'otel-collector/main.go'), join(work, 'main.go'))
      go(['mod', 'init', 'collector'], work)
      go(['get', ...tool.modules], work)
      go(['mod', 'tidy'], work)
      go(['build', '-o', name, '.'], work)
    }
    renameSync(join(work, name), toolPath(name))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const asked = process.argv.slice(2)
  const names = (asked.length === 0 ? Object.keys(tools) : asked) as GoTool[]
  const unknown = names.find((name) => !(name in tools))
  if (unknown !== undefined || spawnSync('go', ['version']).error !== undefined) {
    process.stderr.write(unknown ? `there is no tool ${unknown}\n` : 'Go is not on this machine: https://go.dev/dl/\n')
    process.exit(1)
  }
  for (const name of names) {
    if (!existsSync(toolPath(name))) build(name)
    process.stdout.write(`${toolPath(name)}\n`)
  }
}
