import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { airports } from '../../examples/flights/data.ts'
import { eventually, startMillrace } from '../support/millrace.ts'

const root = join(import.meta.dirname, '..', '..')

interface Row {
  readonly flights: number
  readonly hour: string
  readonly airport: string
}

function rowsOf(stdout: string): Row[] {
  const table = stdout.slice(stdout.indexOf('  late  minutes'))
  return [...table.matchAll(/^ +(\d+) +\d+ {2}(\d{4}-\d\d-\d\d \d\d:\d\d) {2}(.+)$/gm)].map((match) => ({
    flights: Number(match[1]),
    hour: match[2] as string,
    airport: match[3] as string,
  }))
}

describe('the demo', () => {
  test('serves HTTP while it replays, then prints the ten worst airport-hours', async () => {
    const running = startMillrace(['demo', '--rate', '8000', '--set', 'runtime.http.port=0'])
    await eventually('the address is printed', () => /HTTP interface: http/.test(running.stdout()))
    const url = /HTTP interface: (\S+)/.exec(running.stdout())?.[1]
    const ready = await fetch(`${url}/info`)
    assert.equal(ready.status, 200)
    await ready.arrayBuffer()

    const { code, stdout, stderr } = await running.result
    assert.equal(code, 0, stderr)
    assert.equal(stderr, '')
    const rows = rowsOf(stdout)
    assert.equal(rows.length, 10, stdout)

    const script = join(root, 'examples', 'flights', 'count.mjs')
    const counts = JSON.parse(execFileSync(process.execPath, [script, '60'], { encoding: 'utf8' })) as Record<
      string,
      number
    >
    const names = new Map(airports().map(({ key, value }) => [`${value.name}, ${value.city}`, key]))
    for (const { flights, hour, airport } of rows) {
      const start = Date.parse(`${hour.replace(' ', 'T')}:00Z`)
      assert.equal(flights, counts[`${names.get(airport)}@${start}`], `${airport} at ${hour}`)
    }
    const worst = Object.values(counts)
      .sort((a, b) => b - a)
      .slice(0, 10)
    assert.deepEqual(
      rows.map((row) => row.flights),
      worst,
    )
  })
})
