/** Commits for ever, and is killed by its test. Each commit gives every key of a store the number of the commit. */
import { lmdbBackends } from '../../src/state/backends.ts'
import type { ByteChange } from '../../src/state/contract.ts'

const [dir = '', stores = '2', keys = '200'] = process.argv.slice(2)
const factory = lmdbBackends({ dir, applicationId: 'killed' })
const backends = Array.from({ length: Number(stores) }, (_, i) => factory.open(`store-${i}`, 0))
let commit = backends[0]?.checkpoint()?.changelogOffset ?? 0
process.stdout.write(`open ${commit}\n`)
for (;;) {
  commit++
  for (const backend of backends) {
    const changes: ByteChange[] = []
    for (let key = 0; key < Number(keys); key++) {
      // Every third commit takes every fifth key away, so that pages are freed as well as filled.
      const gone = commit % 3 === 0 && key % 5 === 0
      changes.push([Buffer.from(`key-${key}`), gone ? null : Buffer.alloc(20 + ((commit + key) % 400), String(commit))])
    }
    backend.apply(changes, { changelogOffset: commit, commitId: `1.${commit}`, topicId: 'topic' })
  }
}
