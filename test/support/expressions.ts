/** What dashboards and alerts ask Prometheus for. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { dashboards } from '../../scripts/dashboards.ts'

export const monitoringFolder = join(import.meta.dirname, '..', '..', 'deploy', 'monitoring')

export interface Expression {
  /** Where it stands, for messages. */
  readonly place: string
  readonly text: string
  /** The legend of a dashboard's line, or what an alert says. */
  readonly says: string
}

interface Rules {
  readonly groups: ReadonlyArray<{ readonly rules: readonly AlertRule[] }>
}

export interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

export function alertRules(): readonly AlertRule[] {
  const rules = parse(readFileSync(join(monitoringFolder, 'alerts.yml'), 'utf8')) as Rules
  return rules.groups.flatMap((group) => group.rules)
}

export function panelExpressions(): Expression[] {
  return dashboards.flatMap(({ file, panels }) =>
    panels.flatMap(({ title, lines }) => lines.map(([text, says]) => ({ place: `${file}: ${title}`, text, says }))),
  )
}

export function alertExpressions(): Expression[] {
  return alertRules().map(({ alert, expr, annotations }) => ({
    place: `alert ${alert}`,
    text: expr,
    says: Object.values(annotations).join(' '),
  }))
}
