/** Runs the test files that `TEST_FILES` names, one to a line, in this process. `test/run.ts` starts it. */
import { describe } from 'node:test'
import { pathToFileURL } from 'node:url'

// Hooks of a file are those of its suite: they come with its tests, and not with those of all files.
for (const file of process.env.TEST_FILES?.split('\n') ?? [])
  describe(file, async () => {
    await import(pathToFileURL(file).href)
  })
