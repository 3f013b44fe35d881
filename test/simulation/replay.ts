import { World } from '/work/main/test/simulation/world.ts'
import { checkRun } from '/work/main/test/simulation/checkers.ts'
import { application } from '/work/main/test/simulation/workload.ts'
const from = Number(process.argv[2] ?? 1),
  n = Number(process.argv[3] ?? 1)
process.on('unhandledRejection', (e) => {
  console.log('UNHANDLED', e)
  process.exit(1)
})
const specs = application({ next: () => undefined }).compile().stores
for (let seed = from; seed < from + n; seed++) {
  const w = new World({ seed })
  const t = performance.now()
  await w.run()
  if (w.violations.length === 0)
    await checkRun({ cluster: w.cluster, inputs: w.inputs, stores: w.stores, specs, violate: (v) => w.violate(v) })
  const bad = w.violations.length > 0
  if (bad || n < 20)
    console.log(
      seed,
      JSON.stringify(w.derived),
      w.scheduler.steps,
      Math.round(w.scheduler.now),
      Math.round(performance.now() - t) + 'ms',
      w.violations,
      w.facts
        .filter((f) => f.type !== 'restore-progress')
        .map((f) => f.type + ('cause' in f ? ':' + f.cause : ''))
        .join(' ')
        .slice(0, 1500),
    )
  if (bad) process.exitCode = 1
}
