/** YAML for people and older programs. */
import { stringify } from 'yaml'

/** YAML 1.1 takes `off` and `yes` for booleans: such words are quoted. */
export function yamlOf(value: unknown): string {
  return stringify(value, { compat: 'yaml-1.1', lineWidth: 0 })
}
