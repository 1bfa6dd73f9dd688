import { Worker } from 'node:worker_threads'
import type { Clock, Rule, RuleRequest, SharedMemoryHandle } from '@sluice/core'
import type { CommitStep } from '@sluice/core/internal'

/** Places in the words that the threads of a race meet at. */
export const GATE = { ready: 0, open: 1, stuck: 2, never: 3, victimApproved: 4 } as const

/** A joint request that a thread makes `count` times. */
export interface RaceCall {
  readonly requests: readonly RuleRequest[]
  readonly times: number
}

/** Where a thread ends: the n-th time it comes to this step of a commit. */
export interface Death {
  readonly at: CommitStep
  readonly commit: number
}

/** What the threads of a race share. */
export interface RacePlan {
  readonly handle: SharedMemoryHandle
  readonly rules: Readonly<Record<string, Rule>>
  /** The calls of each thread: as many threads as entries. A thread takes turns between its calls. */
  readonly threads: readonly (readonly RaceCall[])[]
  /** The time of all threads, microseconds since 1970: it stands still, so that counts are exact. */
  readonly instantMicros: number
  /** A thread that stops for ever in the middle of a commit, and is then ended from outside. */
  readonly victim?: { readonly thread: number } & Death
}

/** What one worker gets. */
export interface RaceWork {
  readonly handle: SharedMemoryHandle
  readonly rules: Readonly<Record<string, Rule>>
  readonly calls: readonly RaceCall[]
  readonly gate: SharedArrayBuffer
  readonly instant: SharedArrayBuffer
  readonly death?: Death
}

/** A clock that shows what stands in shared memory. */
export function sharedInstant(instant: SharedArrayBuffer): Clock {
  const value = new Float64Array(instant)
  return { nowMicros: () => value[0]! }
}

/**
 * Real threads, all ready and then let go at once, on one shared store. Resolves with the approvals: one list for each
 * thread, one number for each of its calls; for a thread that was ended, one number in all.
 */
export async function runThreadRace(plan: RacePlan): Promise<readonly (readonly number[])[]> {
  const gate = new SharedArrayBuffer(4 * 5)
  const instant = new SharedArrayBuffer(8)
  new Float64Array(instant)[0] = plan.instantMicros
  const runs = plan.threads.map((calls, thread) => {
    const victim = plan.victim?.thread === thread ? { death: plan.victim } : {}
    return startThread({ handle: plan.handle, rules: plan.rules, calls, gate, instant, ...victim })
  })
  const words = new Int32Array(gate)
  await untilEqual(words, GATE.ready, plan.threads.length)
  Atomics.store(words, GATE.open, 1)
  Atomics.notify(words, GATE.open)
  if (plan.victim !== undefined) {
    await untilEqual(words, GATE.stuck, 1)
    await runs[plan.victim.thread]!.worker.terminate()
  }
  const approved = await Promise.all(runs.map((run) => run.approved))
  return approved.map((list) => list ?? [Atomics.load(words, GATE.victimApproved)])
}

interface ThreadRun {
  readonly worker: Worker
  /** Undefined when the thread was ended. */
  readonly approved: Promise<readonly number[] | undefined>
}

function startThread(work: RaceWork): ThreadRun {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const worker = new Worker(new URL(`./thread-race-worker.${extension}`, import.meta.url), {
    workerData: work,
    // Sources resolve to sources, as in the thread that starts it.
    ...(extension === 'ts' ? { execArgv: ['--conditions=source'] } : {}),
  })
  const approved = new Promise<readonly number[] | undefined>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => resolve(undefined))
  })
  return { worker, approved }
}

/** Waits, without blocking this thread, until a word has reached a value. */
async function untilEqual(words: Int32Array, index: number, value: number): Promise<void> {
  for (let seen = Atomics.load(words, index); seen !== value; seen = Atomics.load(words, index)) {
    const change = Atomics.waitAsync(words, index, seen)
    if (change.async) await change.value
  }
}
