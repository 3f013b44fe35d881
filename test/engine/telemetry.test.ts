/** Traces from the producer's span through re-keys and stores to the header of the result, and metrics, by OTLP. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { goTool } from '../support/go-tools.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { freePort } from '../../scripts/free-ports.ts'
import { attribute, type OtlpSpan, startReceiver, Telemetry } from './support/otel/receiver.ts'

const app = join(import.meta.dirname, 'apps/traced.ts')
const sdk = pathToFileURL(join(import.meta.dirname, 'support/otel/sdk.mjs')).href

interface Line {
  readonly key: string
  readonly value: number
  readonly headers?: ReadonlyArray<readonly [string, string]>
}

const traceOf = (n: number): string => n.toString(16).padStart(32, 'a')
const spanOf = (n: number): string => n.toString(16).padStart(16, 'b')
const orders = 12

/** Every third order is not sampled, and one has no trace. */
function input(): string {
  const lines = Array.from({ length: orders }, (_, n) => {
    const flag = n % 3 === 2 ? '00' : '01'
    const headers =
      n === 0
        ? []
        : [
            ['traceparent', `00-${traceOf(n)}-${spanOf(n)}-${flag}`],
            ['shop', 'b'],
          ]
    return JSON.stringify({ key: `o${n}`, value: { id: `o${n}`, customer: `c${n % 5}` }, timestamp: n, headers })
  })
  return `${lines.join('\n')}\n`
}

async function run(
  folder: string,
  endpoint: string | null,
  set: readonly string[],
): Promise<{ out: Line[]; log: string }> {
  writeFileSync(join(folder, 'orders.ndjson'), input())
  const settings = ['engine.lanes.count=2', 'runtime.http.port=0', ...set].flatMap((pair) => ['--set', pair])
  const feed = ['--feed', `orders=${join(folder, 'orders.ndjson')}`, '--print', 'totals', '--until-idle']
  const env =
    endpoint === null
      ? {}
      : {
          NODE_OPTIONS: `--import ${sdk}`,
          OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
          OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
          OTEL_METRIC_EXPORT_INTERVAL: '500',
          OTEL_METRIC_EXPORT_TIMEOUT: '400',
          OTEL_LOGS_EXPORTER: 'none',
        }
  const { code, stdout, stderr } = await millrace(['run', app, ...settings, ...feed], { env, cwd: folder })
  assert.equal(code, 0, stderr)
  return {
    out: stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line),
    log: stderr,
  }
}

const parentOf = (line: Line): string[] | undefined =>
  line.headers?.find(([name]) => name === 'traceparent')?.[1].split('-')

function checkTraces(out: readonly Line[], spans: readonly OtlpSpan[]): void {
  assert.equal(out.length, orders)
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const named = (traceId: string): string[] => spans.filter((span) => span.traceId === traceId).map(({ name }) => name)
  for (let n = 1; n < orders; n++) {
    const line = out.find((one) => parentOf(one)?.[1] === traceOf(n))
    assert.ok(line, `the trace of order ${n} goes on in its result`)
    assert.ok(line.headers?.some(([name, value]) => name === 'shop' && value === 'b'))
    const [, , spanId = '', flags] = parentOf(line) as string[]
    if (n % 3 === 2) {
      assert.deepEqual([spanId, flags], [spanOf(n), '00'], 'what is not sampled is carried as it came')
      assert.deepEqual(named(traceOf(n)), [])
      continue
    }
    const way: string[] = []
    let at = byId.get(spanId)
    for (; at !== undefined; at = byId.get(at.parentSpanId ?? '')) {
      way.unshift(at.name)
      if (at.parentSpanId === spanOf(n)) break
    }
    assert.equal(at?.parentSpanId, spanOf(n), `the way of order ${n} leads from its producer: ${way.join(', ')}`)
    assert.deepEqual(way, [
      'process orders',
      'kept',
      'asked',
      'by-customer',
      'by-customer-repartition-filter',
      'send by-customer-repartition-sink',
      'process orders',
      'counted',
      'told',
      'send totals',
    ])
    assert.equal(attribute(at as OtlpSpan, 'messaging.operation.type'), 'process')
    assert.equal(at?.kind, 5, 'a consumer')
    assert.equal(byId.get(spanId)?.kind, 4, 'a producer')
  }
}

const folderFor = (t: TestContext): string => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-otel-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('OpenTelemetry', () => {
  test('spans lead from the producer to the result over lanes and stores, and metrics come', async (t) => {
    const telemetry = new Telemetry()
    const { server, url } = await startReceiver(telemetry)
    t.after(() => server.close())
    const set = ['telemetry.opentelemetry=true', 'telemetry.roots=1']
    const { out, log } = await run(folderFor(t), url, set)
    checkTraces(out, telemetry.spans)
    const names = new Set(telemetry.spans.map(({ name }) => name))
    assert.ok(names.has('poll') && names.has('commit'), [...names].join())
    const commit = telemetry.spans.find(({ name }) => name === 'commit')
    assert.deepEqual(
      commit?.events?.map(({ name }) => name),
      ['align', 'flush', 'offsets', 'endTransaction', 'apply'],
    )
    const own = telemetry.spans.find((span) => span.name === 'process orders' && span.parentSpanId === undefined)
    assert.equal(
      own && attribute(own, 'messaging.kafka.offset') !== undefined,
      true,
      'the record without a trace began one',
    )
    assert.ok(telemetry.metrics.has('engine_records_dispatched_total'), [...telemetry.metrics].join())
    const logged = log.split('\n').filter((line) => line.includes('"order o1"'))
    assert.equal(
      (JSON.parse(logged[0] as string) as { trace_id: string }).trace_id,
      traceOf(1),
      'the log names the trace',
    )
  })

  test('without it, headers go on as they came', async (t) => {
    const { out } = await run(folderFor(t), null, [])
    for (let n = 1; n < orders; n++) {
      const line = out.find((one) => parentOf(one)?.[1] === traceOf(n))
      assert.equal(line && parentOf(line)?.[2], spanOf(n))
    }
  })

  const collector = goTool('otelcol')
  test('the same arrives at a real collector', { skip: collector.missing }, async (t) => {
    const folder = folderFor(t)
    const port = await freePort()
    const file = join(folder, 'spans.json')
    const config = join(folder, 'collector.yaml')
    writeFileSync(config, collectorConfig(port, file))
    const child = spawn(collector.path, ['--config', config], { stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    await eventually('the collector listens', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/traces`, { method: 'POST' }).catch(() => undefined)
      return answer !== undefined
    })
    const { out } = await run(folder, `http://127.0.0.1:${port}`, ['telemetry.opentelemetry=true', 'telemetry.roots=0'])
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
    const telemetry = new Telemetry()
    for (const line of readFileSync(file, 'utf8').trim().split('\n')) telemetry.take(JSON.parse(line))
    checkTraces(out, telemetry.spans)
    assert.ok(telemetry.metrics.has('engine_records_dispatched_total'))
  })
})

function collectorConfig(port: number, file: string): string {
  return `receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:${port}" } } } }
exporters: { file: { path: ${JSON.stringify(file)} } }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    traces: { receivers: [otlp], exporters: [file] }
    metrics: { receivers: [otlp], exporters: [file] }
`
}
