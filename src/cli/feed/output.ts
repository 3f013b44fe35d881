/** Whether standard output still takes what is written to it. Node keeps a file's errors no longer than it tells of them. */
let fault: NodeJS.ErrnoException | undefined

/** What cannot be written is dropped, so that work that is under way ends in order; the end of the command tells of it. */
export function keepWriting(): void {
  process.stdout.on('error', (error) => {
    fault ??= error
  })
  // There is nobody left to tell.
  process.stderr.on('error', () => undefined)
}

/** Why the first piece that was not written was not. */
export function outputFault(): NodeJS.ErrnoException | undefined {
  return fault
}
