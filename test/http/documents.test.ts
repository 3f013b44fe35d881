import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { httpPage, renderHttpPage } from '../../scripts/docs-http.ts'
import { metricRows, metricsPage, renderMetricsPage } from '../../scripts/docs-metrics.ts'
import { fieldDocs } from '../../src/http/routes/field-docs.ts'
import { routes } from '../../src/http/routes/routes.ts'
import { fieldsOf, type SchemaName, schemas } from '../../src/http/routes/schemas.ts'

describe('reference pages', () => {
  test('docs/http.md is what the table of routes says; `node scripts/docs-http.ts` renews it', () => {
    const page = readFileSync(httpPage, 'utf8')
    assert.equal(page, renderHttpPage())
    const documented = [...page.matchAll(/^### (\w+) (\S+)$/gm)].map(([, method, path]) => `${method} ${path}`)
    assert.deepEqual(
      documented,
      routes.map((route) => `${route.method} ${route.path}`),
    )
  })

  test('every field that an answer is sure to have is described, and nothing else', () => {
    for (const [name, docs] of Object.entries(fieldDocs)) {
      const paths = fieldsOf(schemas[name as SchemaName]).map((field) => field.path)
      assert.deepEqual(Object.keys(docs).sort(), paths.sort(), name)
    }
  })

  test('docs/metrics.md is what the table of metrics says; `node scripts/docs-metrics.ts` renews it', () => {
    const page = readFileSync(metricsPage, 'utf8')
    assert.equal(page, renderMetricsPage())
    const documented = [...page.matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map((match) => match[1])
    assert.deepEqual(
      documented,
      metricRows().map((row) => row.name),
    )
  })
})
