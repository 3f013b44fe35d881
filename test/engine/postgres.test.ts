/** The example that writes to PostgreSQL, killed again and again: each row once. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { strikes } from '../../examples/datasets.ts'
import { tables } from '../../examples/postgres/app.ts'
import { repositoryRoot } from '../groups.ts'
import { eventually, type RunningCommand, startMillrace } from '../support/millrace.ts'
import { postgresMissing, startPostgres } from '../support/postgres.ts'

const kills = Number(process.env.POSTGRES_KILLS ?? 3)

test(`a row for each record in PostgreSQL after ${kills} kills`, { skip: postgresMissing }, async (t) => {
  const database = await startPostgres()
  const pool = new pg.Pool({ connectionString: database.url })
  // The server ends before its last connection does.
  pool.on('error', () => undefined)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-postgres-'))
  const running: RunningCommand[] = []
  t.after(async () => {
    for (const { child } of running) child.kill('SIGKILL')
    await pool.end()
    await database.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  await pool.query(tables)
  const claims = strikes().slice(0, Math.min(10_000, 400 + kills * 300))
  const feed = join(folder, 'claims.ndjson')
  writeFileSync(feed, `${claims.map((claim) => JSON.stringify(claim)).join('\n')}\n`)
  const start = (): RunningCommand => {
    const app = join(repositoryRoot, 'examples/postgres/app.ts')
    const set = [
      `broker.bootstrap-servers=embedded:${join(folder, 'broker')}`,
      'runtime.http.enabled=false',
      'engine.lanes.count=1',
    ]
    const args = ['run', app, ...set.flatMap((pair) => ['--set', pair]), '--feed', `claims=${feed}`, '--until-idle']
    const command = startMillrace(args, { env: { PG_URL: database.url }, timeoutMs: 240_000 })
    running.push(command)
    return command
  }
  const rows = async (): Promise<number> =>
    Number((await pool.query<{ n: string }>('SELECT count(*) AS n FROM claims')).rows[0]?.n)

  let amidst = 0
  for (let kill = 0; kill < kills; kill++) {
    const before = await rows()
    const command = start()
    // Amidst the records, if there are any left: at another point each time.
    const from = before + 20 + ((kill * 97) % 80)
    let over = false
    void command.result.then(() => {
      over = true
    })
    await eventually('rows come', async () => over || (await rows()) >= Math.min(claims.length, from), 240_000)
    if (!over) amidst++
    command.child.kill('SIGKILL')
    await command.result
  }
  const { code, stderr } = await start().result
  assert.equal(code, 0, stderr)
  assert.ok(amidst > 0, 'it was killed at work')

  const { rows: balances } = await pool.query<{ operator: string; claims: number; dollars: string }>(
    'SELECT * FROM balances',
  )
  const expected = [...Map.groupBy(claims, ({ key }) => key)].map(([operator, own]) => ({
    operator,
    claims: own.length,
    dollars: String(own.reduce((sum, { value }) => sum + value.dollars, 0)),
  }))
  const byName = (a: { operator: string }, b: { operator: string }): number => (a.operator < b.operator ? -1 : 1)
  assert.equal(await rows(), claims.length)
  assert.deepEqual(balances.sort(byName), expected.sort(byName))
  t.diagnostic(`${amidst} of ${kills} kills came amidst ${claims.length} records`)
})
