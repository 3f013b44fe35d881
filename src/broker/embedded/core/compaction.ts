import type { Partition } from './topics.ts'

/** Compacts or shortens the log where its topic asks for it. */
export function maintain(_partition: Partition, _now: number, _compactionBytes: number): void {
  return
}
