/**
 * Claims into PostgreSQL, each once, whatever is killed and replayed. The database remembers the record that a row came from, and
 * changes balances only together with a new row: in one statement.
 */
import { defineApp, serdes } from 'millrace'
import pg from 'pg'
import type { Strike } from '../datasets.ts'

const pool = new pg.Pool({ connectionString: process.env.PG_URL, max: 8 })
// A connection that breaks while nobody uses it is replaced.
pool.on('error', () => undefined)

export const tables = `
  CREATE TABLE IF NOT EXISTS claims (
    topic text, partition int, record_offset bigint, operator text NOT NULL, dollars bigint NOT NULL,
    PRIMARY KEY (topic, partition, record_offset)
  );
  CREATE TABLE IF NOT EXISTS balances (operator text PRIMARY KEY, claims int NOT NULL, dollars bigint NOT NULL);`

const insert = `
  WITH fresh AS (
    INSERT INTO claims VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING operator, dollars
  )
  INSERT INTO balances SELECT operator, 1, dollars FROM fresh
  ON CONFLICT (operator) DO UPDATE
    SET claims = balances.claims + 1, dollars = balances.dollars + excluded.dollars`

export default defineApp({
  applicationId: 'claims-to-postgres',
  build(topology) {
    topology.stream('claims', { key: serdes.string, value: serdes.json<Strike>() }).foreach(
      async ({ dollars }, operator, { topic, partition, offset }) => {
        await pool.query({ name: 'insert', text: insert, values: [topic, partition, offset, operator, dollars] })
      },
      { concurrency: 8 },
    )
  },
})
