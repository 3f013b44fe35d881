/** A worker that is stuck in the way it is told. */
import { pbkdf2Sync } from 'node:crypto'
import { openSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'

function spinForEver(): void {
  for (let turns = 0; ; turns++) if (turns < 0) return
}

function waitForEver(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

function blockInNativeCode(): void {
  pbkdf2Sync('password', 'salt', 4_000_000, 64, 'sha512')
}

function workInSlices(): void {
  setInterval(spinAWhile, 1)
}

function spinAWhile(): void {
  const end = performance.now() + 20
  while (performance.now() < end) Math.sqrt(end)
}

function workOften(): void {
  setInterval(() => {
    const end = performance.now() + 3
    while (performance.now() < end) Math.sqrt(end)
  }, 4)
}

function recurse(depth: number): void {
  if (depth > 0) recurse(depth - 1)
  else spinForEver()
}

/** Asleep in the operating system, until somebody opens the other end of the pipe. */
function waitForPipe(path: string): void {
  openSync(path, 'r')
}

parentPort?.postMessage('ready')
if (String(workerData).startsWith('pipe:')) waitForPipe(workerData.slice('pipe:'.length))
switch (workerData) {
  case 'spin':
    spinForEver()
    break
  case 'wait':
    waitForEver()
    break
  case 'native':
    blockInNativeCode()
    parentPort?.postMessage('done')
    parentPort?.on('message', () => undefined)
    break
  case 'slices':
    workInSlices()
    break
  case 'often':
    workOften()
    break
  case 'deep':
    recurse(300)
    break
  default:
    parentPort?.on('message', (message) => parentPort?.postMessage(message))
}
