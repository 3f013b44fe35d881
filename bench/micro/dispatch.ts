/** Cost of choosing the next record and of moving the watermarks on, per record. `node bench/micro/dispatch.ts` */
import { Watermarks } from '../../src/time/watermarks.ts'

const records = 2_000_000

function nanosecondsPerRecord(partitions: number, aligned: boolean, empty: number): number {
  const alignment = aligned ? { group: 'g', maxDriftMs: 1_000_000 } : undefined
  const watermarks = new Watermarks()
  const offsets = new Float64Array(partitions)
  for (let i = 0; i < partitions; i++) {
    const p = watermarks.assign({ topic: 't', partition: i }, { maxOutOfOrdernessMs: 50, idlenessMs: 1000, alignment })
    if (i >= empty) watermarks.headArrived(p, 1000 + ((i * 7919) % 100), 0, 0)
  }
  const startedAt = performance.now()
  for (let i = 0; i < records; i++) {
    const p = watermarks.pick(i)
    const offset = ++(offsets[p] as number)
    offsets[p] = offset
    watermarks.dispatched(p, 1000 + offset * 10 + ((offset * 7919 + p * 104729) % 100), offset, i)
  }
  return ((performance.now() - startedAt) * 1e6) / records
}

for (const partitions of [1, 4, 16, 64, 256]) {
  for (const aligned of [false, true]) {
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 4; round++) best = Math.min(best, nanosecondsPerRecord(partitions, aligned, 0))
    const label = `${String(partitions).padStart(3)} partitions${aligned ? ', aligned' : '         '}`
    process.stdout.write(`${label}  ${best.toFixed(0).padStart(4)} ns a record\n`)
  }
}
