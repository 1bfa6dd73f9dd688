import { parentPort, workerData } from 'node:worker_threads'
import type { Limiter, Rule, SharedMemoryHandle, SharedMemoryStore } from '@sluice/core'
import { attachSharedMemoryStore, createLimiter } from '@sluice/core'
import type { Burst } from '../tests/test-bed.ts'
import type { Reply } from './callers.ts'
import { SharedClock } from './shared-clock.ts'
import { StartGate } from './start-gate.ts'

// A thread of the pool. It answers each order with one reply, and a burst with two: when it is ready, and when it is
// done.

/** What a thread knows from its start. */
export interface RaceWorkerData {
  readonly gateMemory: SharedArrayBuffer
}

/** What a thread works on until `detach`. */
export interface SharedSubject {
  readonly rule: Rule
  readonly handle: SharedMemoryHandle
  readonly clockMemory: SharedArrayBuffer
}

/** Orders for a thread. */
export type Order =
  | { readonly kind: 'attach'; readonly subject: SharedSubject }
  | { readonly kind: 'burst'; readonly burst: Burst; readonly round: number }
  | { readonly kind: 'detach' }

/**
 * Approvals after which a thread steps aside. A hundred take less time than another thread needs to wake up: on a
 * machine with few cores, the first one awake would take them all, and there would be no race.
 */
const APPROVALS_AT_A_STRETCH = 4

/** How long it steps aside: long enough for the system to give its core to another thread. */
const STEP_ASIDE_MS = 0.02

const gate = StartGate.attach((workerData as RaceWorkerData).gateMemory)
let attached: { readonly store: SharedMemoryStore; readonly limiter: Limiter<'sync'> } | undefined

function reply(kind: Reply['kind'], approvedPerNode: readonly number[] = []): void {
  parentPort?.postMessage({ kind, approvedPerNode } satisfies Reply)
}

function attach({ rule, handle, clockMemory }: SharedSubject): void {
  const store = attachSharedMemoryStore(handle, { clock: SharedClock.attach(clockMemory) })
  attached = { store, limiter: createLimiter({ ...rule, store }) }
}

function requireLimiter(): Limiter<'sync'> {
  if (attached === undefined) throw new Error('A burst came before the store to make it on.')
  return attached.limiter
}

function makeRequests({ nodes, requestsPerNode }: Burst): number[] {
  const limiter = requireLimiter()
  const approvedPerNode = nodes.map(() => 0)
  let approved = 0
  for (let request = 0; request < requestsPerNode; request++) {
    for (const [index, node] of nodes.entries()) {
      if (!limiter.tryAcquire(node)) continue
      approvedPerNode[index]! += 1
      approved++
      if (approved % APPROVALS_AT_A_STRETCH === 0) stepAside()
    }
  }
  return approvedPerNode
}

const neverWoken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))

function stepAside(): void {
  Atomics.wait(neverWoken, 0, 0, STEP_ASIDE_MS)
}

async function detach(): Promise<void> {
  await attached?.limiter.close()
  await attached?.store.close()
  attached = undefined
}

async function execute(order: Order): Promise<void> {
  switch (order.kind) {
    case 'attach':
      attach(order.subject)
      return reply('attached')
    case 'burst':
      reply('ready')
      gate.wait(order.round)
      return reply('done', makeRequests(order.burst))
    case 'detach':
      await detach()
      return reply('detached')
  }
}

// A failure is thrown out of the thread, where the pool sees it.
parentPort?.on('message', (order: Order) => void execute(order))
