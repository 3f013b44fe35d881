/** Dashboards and alerts name metrics and labels that exist. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { dashboards, rendered } from '../../../scripts/dashboards.ts'
import { histogramTable, metricTable, observedTable } from '../../../src/metrics/table.ts'
import {
  alertExpressions,
  alertRules,
  type Expression,
  monitoringFolder,
  panelExpressions,
} from '../../support/expressions.ts'

/** Labels by the name of each series, those of histograms' parts too. */
const series = new Map<string, ReadonlySet<string>>([['up', new Set()]])
for (const { name, labels } of metricTable) series.set(name, new Set(labels))
for (const { name, labels } of histogramTable) addHistogram(name, labels)
for (const [name, { type, labels }] of Object.entries(observedTable)) {
  if (type === 'histogram') addHistogram(name, labels)
  else series.set(name, new Set(labels))
}

function addHistogram(name: string, labels: readonly string[]): void {
  series.set(`${name}_bucket`, new Set([...labels, 'le']))
  for (const part of ['sum', 'count']) series.set(`${name}_${part}`, new Set(labels))
}

/** What Prometheus adds to everything that it scrapes; the namespace where targets are found in a cluster. */
const ofTarget = ['instance', 'job', 'namespace']

function faults({ place, text, says }: Expression): string[] {
  const found: string[] = []
  const known = new Set(ofTarget)
  // Strings of selectors may hold anything; names are looked for outside of them.
  const bare = text.replace(/"[^"]*"/g, '""')
  for (const [, name = '', , selector = ''] of bare.matchAll(/\b(engine_\w+|up)(\{([^}]*)\})?/g)) {
    const labels = series.get(name)
    if (labels === undefined) {
      found.push(`${place}: there is no metric ${name}`)
      continue
    }
    for (const label of labels) known.add(label)
    for (const [, label = ''] of selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
      if (!labels.has(label) && !ofTarget.includes(label)) found.push(`${place}: ${name} has no label ${label}`)
    }
  }
  let told: ReadonlySet<string> = known
  const groupings = [...bare.matchAll(/\bby \(([^)]*)\)/g)].map(([, list = '']) => list.split(/,\s*/))
  for (const label of groupings.flat()) if (!known.has(label)) found.push(`${place}: nothing has the label ${label}`)
  // What is grouped away cannot be told.
  if (groupings.length > 0) told = new Set(groupings.flat())
  for (const [, label = ''] of says.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)) {
    if (!told.has(label)) found.push(`${place}: says {{${label}}}, which the result does not have`)
  }
  return found
}

describe('dashboards and alerts', () => {
  test('the reader of expressions sees mistakes', () => {
    const wrong = (text: string, says = ''): number => faults({ place: 'x', text, says }).length
    assert.equal(wrong('engine_lag_records > 0'), 0)
    assert.equal(wrong('engine_lag_record > 0'), 1)
    assert.equal(wrong('engine_commits_total{result="aborted"}'), 1)
    assert.equal(wrong('sum by (lane) (engine_lag_records)'), 1)
    assert.equal(wrong('sum by (instance) (engine_commits_total)', '{{outcome}}'), 1)
  })

  test('name metrics and labels that exist', () => {
    const expressions = [...panelExpressions(), ...alertExpressions()]
    assert.ok(expressions.length > 50, `${expressions.length} expressions`)
    assert.deepEqual(expressions.flatMap(faults), [])
  })

  test('the files of the dashboards are up to date', () => {
    const folder = join(monitoringFolder, 'grafana', 'dashboards')
    assert.deepEqual(readdirSync(folder).sort(), dashboards.map(({ file }) => file).sort())
    for (const dashboard of dashboards) {
      const text = readFileSync(join(folder, dashboard.file), 'utf8')
      assert.equal(text, rendered(dashboard), `${dashboard.file}: run node scripts/dashboards.ts`)
    }
  })

  test('every alert says what is wrong and what to do, and has a severity', () => {
    for (const { alert, labels, annotations } of alertRules()) {
      assert.match(labels.severity, /^(critical|warning)$/, alert)
      assert.match(annotations.summary, /\.$/, alert)
      assert.match(annotations.description, /\.$/, alert)
    }
  })
})
