import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter } from '@sluice/core'
import { attachWithFaults, type CommitStep } from '@sluice/core/internal'
import { GATE, type RaceWork, sharedInstant } from './thread-race.ts'

// One thread of a race: attaches to the store, waits at the gate with the others, does its calls, reports the
// approvals.

const work = workerData as RaceWork
const gate = new Int32Array(work.gate)
let commits = 0

/**
 * At the chosen step of the chosen commit the thread reports it and never continues, so that a test can end it there.
 */
function dieHere(step: CommitStep): void {
  if (step !== work.death?.at) return
  commits++
  if (commits !== work.death.commit) return
  Atomics.store(gate, GATE.stuck, 1)
  Atomics.notify(gate, GATE.stuck)
  Atomics.wait(gate, GATE.never, 0)
}

const store = attachWithFaults(work.handle, {
  clock: sharedInstant(work.instant),
  ...(work.death === undefined ? {} : { onStep: dieHere }),
})
const limiters = createLimiter({ rules: work.rules, store })

Atomics.add(gate, GATE.ready, 1)
Atomics.notify(gate, GATE.ready)
Atomics.wait(gate, GATE.open, 0)

const approved = work.calls.map(() => 0)
const rounds = Math.max(...work.calls.map((call) => call.times))
for (let round = 0; round < rounds; round++) {
  for (const [index, { requests, times }] of work.calls.entries()) {
    if (round >= times || !limiters.checkAll(requests).allowed) continue
    approved[index] = approved[index]! + 1
    if (work.death !== undefined) Atomics.add(gate, GATE.victimApproved, 1)
  }
}
await store.close()
parentPort?.postMessage(approved)
