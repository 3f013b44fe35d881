import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import { createThreadDumper, type DumpedThread, type ThreadDumper } from '../../src/runtime/threads/thread-dump.ts'
import type { ThreadsSnapshot } from '../../src/view/view.ts'

interface Scene {
  readonly dumper: ThreadDumper
  readonly workers: readonly Worker[]
  dump(depth?: number): Promise<ThreadsSnapshot>
}

/** Workers `lane-0` … each doing what its word says, and a patient dumper: the machine may be busy. */
async function scene(t: TestContext, ...doing: string[]): Promise<Scene> {
  const workers = doing.map(
    (workerData, i) =>
      new Worker(new URL('support/busy-worker.ts', import.meta.url), { name: `lane-${i}`, workerData }),
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const threads = workers.map(
    (worker, i): DumpedThread => ({ name: `lane-${i}`, role: 'lane', threadId: worker.threadId }),
  )
  const dumper = createThreadDumper({
    threads: () => threads,
    currentNode: (name) => `node of ${name}`,
    budgetMs: 5000,
  })
  t.after(async () => {
    dumper.close()
    await Promise.all(workers.map((worker) => worker.terminate()))
  })
  return { dumper, workers, dump: (depth = 40) => dumper.dump({ depth }) }
}

const lane = (snapshot: ThreadsSnapshot, index: number): ThreadsSnapshot['engineThreads'][number] => {
  const found = snapshot.engineThreads.find((thread) => thread.name === `lane-${index}`)
  assert.ok(found, `lane-${index} is in the dump`)
  return found
}

/** A worker says that it is ready a moment before it is in the place that a test wants it to be seen in. */
async function untilLane(
  dump: () => Promise<ThreadsSnapshot>,
  index: number,
  isThere: (thread: ReturnType<typeof lane>) => boolean,
): Promise<ReturnType<typeof lane>> {
  for (let i = 0; ; i++) {
    const thread = lane(await dump(), index)
    if (isThere(thread)) return thread
    assert.ok(i < 50, `still ${JSON.stringify(thread)}`)
  }
}

describe('thread dump', () => {
  test('shows the function that an endless loop is in, and leaves it running', async (t) => {
    const { dump } = await scene(t, 'spin')
    for (let round = 0; round < 3; round++) {
      const { state, stack, currentNode } = lane(await dump(), 0)
      assert.equal(state, 'RUNNABLE')
      assert.match(stack[0] ?? '', /^spinForEver \(test\/http\/support\/busy-worker\.ts:\d+\)$/)
      assert.equal(currentNode, 'node of lane-0')
    }
  })

  test('shows the stack of a worker in Atomics.wait, as WAITING', async (t) => {
    const { dump } = await scene(t, 'wait')
    const isThere = ({ state, stack }: ReturnType<typeof lane>): boolean =>
      /^waitForEver /.test(stack[0] ?? '') && (state === 'WAITING' || process.platform !== 'linux')
    await untilLane(dump, 0, isThere)
  })

  test('an idle worker is WAITING without a stack, and answers messages afterwards', async (t) => {
    const { dump, workers } = await scene(t, 'idle')
    const worker = workers[0] as Worker
    for (let round = 0; round < 3; round++) {
      const { state, stack } = lane(await dump(), 0)
      assert.equal(state, 'WAITING')
      assert.deepEqual(stack, [])
      worker.postMessage(round)
      assert.deepEqual(await once(worker, 'message'), [round])
    }
  })

  test('one whose thread has ended is told as such', async (t) => {
    const threads: DumpedThread[] = [{ name: 'lane-0', role: 'lane', threadId: -1, ended: true }]
    const dumper = createThreadDumper({ threads: () => threads, currentNode: () => 'the last one' })
    t.after(() => dumper.close())
    const { state, stack, currentNode } = lane(await dumper.dump({ depth: 40 }), 0)
    assert.deepEqual([state, stack, currentNode], ['WAITING', ['(the thread has ended)'], null])
  })

  test('a worker in native code is BLOCKED, and goes on although it was asked', async (t) => {
    const { workers } = await scene(t, 'native', 'spin')
    const native = workers[0] as Worker
    const done = once(native, 'message')
    const threads = workers.map((w, i): DumpedThread => ({ name: `lane-${i}`, role: 'lane', threadId: w.threadId }))
    const dumper = createThreadDumper({ threads: () => threads, budgetMs: 150 })
    t.after(() => dumper.close())
    const first = await untilLane(
      () => dumper.dump({ depth: 40 }),
      0,
      ({ state }) => state === 'BLOCKED',
    )
    assert.deepEqual(first.stack, [])
    const again = await dumper.dump({ depth: 40 })
    assert.equal(lane(again, 0).state, 'BLOCKED')
    assert.deepEqual(await done, ['done'])
  })

  test('one that sleeps in native code is not waited for', { skip: process.platform !== 'linux' }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-pipe-'))
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const worker = new Worker(new URL('support/busy-worker.ts', import.meta.url), {
      name: 'lane-0',
      workerData: `pipe:${pipe}`,
    })
    await once(worker, 'message')
    // Waiting for its answer would take an hour.
    const threads: DumpedThread[] = [{ name: 'lane-0', role: 'lane', threadId: worker.threadId }]
    const dumper = createThreadDumper({ threads: () => threads, budgetMs: 3_600_000 })
    const { state, stack } = await untilLane(
      () => dumper.dump({ depth: 40 }),
      0,
      (thread) => thread.state === 'BLOCKED',
    )
    assert.deepEqual([state, stack], ['BLOCKED', []])
    closeSync(openSync(pipe, 'w'))
    await untilLane(
      () => dumper.dump({ depth: 40 }),
      0,
      (thread) => thread.state === 'WAITING',
    )
    dumper.close()
    await worker.terminate()
    rmSync(folder, { recursive: true })
  })

  test('cuts stacks at the depth asked for, innermost first', async (t) => {
    const { dump } = await scene(t, 'deep')
    // On a busy machine the first looks may find the worker without the processor.
    const { stack: short } = await untilLane(
      () => dump(5),
      0,
      ({ stack }) => stack.length > 0,
    )
    assert.equal(short.length, 5)
    assert.match(short[0] ?? '', /^spinForEver /)
    assert.match(short[4] ?? '', /^recurse /)
    const { stack: whole } = await untilLane(
      () => dump(1000),
      0,
      ({ stack }) => stack.length > 5,
    )
    assert.ok(whole.length > 300, `${whole.length} frames`)
  })

  test('who asks while a dump is under way gets the same, each with a depth of his own', async (t) => {
    const { dump } = await scene(t, 'spin', 'idle', 'slices')
    const [shallow, deep] = await Promise.all([dump(1), dump(40)])
    assert.equal(shallow.timestamp, deep.timestamp)
    assert.equal(lane(shallow, 0).stack.length, 1)
    assert.ok(lane(deep, 0).stack.length > 1)
  })

  test('lists the threads of the operating system by name', { skip: process.platform !== 'linux' }, async (t) => {
    const { dump } = await scene(t, 'spin', 'idle')
    const { platformThreads, engineThreads } = await dump()
    const names = platformThreads.map((thread) => thread.name)
    assert.ok(names.includes('lane-0') && names.includes('lane-1'), names.join(', '))
    assert.ok(platformThreads.some((thread) => thread.tid === process.pid))
    const control = engineThreads.find((thread) => thread.name === 'control')
    assert.match(control?.stack.join('\n') ?? '', /thread-dump\.ts:\d+/)
  })

  test('frames tell functions and places, nothing of the data', async (t) => {
    const { dump } = await scene(t, 'deep')
    const text = JSON.stringify((await dump(1000)).engineThreads)
    assert.doesNotMatch(text, /300|depth/)
  })

  test('workers that end, and new ones, are no trouble', async (t) => {
    const { dump, workers } = await scene(t, 'spin', 'idle')
    await dump()
    await workers[0]?.terminate()
    const { state, stack } = lane(await dump(), 0)
    assert.equal(state, 'WAITING')
    assert.deepEqual(stack, [])
  })

  test('interrupt the process between any two steps without harm: its timers stay whole', async (t) => {
    const { workers } = await scene(t, 'often', 'often', 'often')
    const threads = workers.map(({ threadId }, i) => ({ name: `lane-${i}`, role: 'lane' as const, threadId }))
    const dumper = createThreadDumper({ threads: () => threads })
    let busy = true
    t.after(() => {
      busy = false
      dumper.close()
    })
    // Adds and takes away timers almost without a pause. Bookkeeping that is changed in its midst throws sooner or later.
    const churn = (): void => {
      if (!busy) return
      const until = performance.now() + 4
      while (performance.now() < until) {
        const timers = Array.from({ length: 200 }, (_, i) => setTimeout(() => undefined, 1 + ((i * 7919) % 977)))
        for (const timer of timers) clearTimeout(timer)
      }
      setImmediate(churn)
    }
    churn()
    const end = performance.now() + 20_000
    for (let i = 0; i < 80 && performance.now() < end; i++) await dumper.dump({ depth: 5 })
  })
})
