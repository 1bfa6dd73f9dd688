import { SluiceError } from '../../errors.ts'
import { drawSecret } from '../../fingerprint.ts'
import type { OptionTaker } from '../../options/known-options.ts'
import { checkOptionNames, checkSources, checkWhole } from '../../options/known-options.ts'
import type { Clock } from '../../system/clock-and-timers.ts'
import { systemClock } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { systemRandom } from '../../system/random.ts'
import { HEADER, layoutFor, readHeader, writeHeader } from './layout.ts'
import { SharedMemoryStore, type ThreadParts } from './thread-store.ts'

export type { SharedMemoryStore }

/** Options of {@link sharedMemoryStore}. */
export interface SharedMemoryStoreOptions {
  /**
   * Keys that there is room for in any case, 16 to 16,000,000. Default: 100,000. The memory is taken at once: about 100
   * bytes a key.
   */
  readonly maxKeys?: number
  /**
   * Most values in a state, 4 to 16,384. Default: 4, which fits every algorithm but three: the exact log needs 2 for
   * each unit of its limit, its segmented form 2 more than it has segments, concurrency 3 for each slot. Every key
   * takes 8 bytes for each.
   */
  readonly maxStateSize?: number
  /** Most threads attached at once, 1 to 1,024. Default: 64. */
  readonly maxThreads?: number
  readonly clock?: Clock
  readonly random?: Random
}

/**
 * What makes a shared store known to another thread. Pass it on as `workerData` or in a message; it cannot leave the
 * process.
 */
export interface SharedMemoryHandle {
  readonly buffer: SharedArrayBuffer
}

/** What a thread brings along when it attaches. */
export interface AttachOptions {
  readonly clock?: Clock
}

const TAKER: OptionTaker = {
  name: 'the shared memory store',
  options: ['maxKeys', 'maxStateSize', 'maxThreads', 'clock', 'random'],
  example: '{ maxKeys: 100000 }',
}
const ATTACH_TAKER: OptionTaker = {
  name: 'attachSharedMemoryStore',
  options: ['clock'],
  example: '{ clock }',
}

/** Makes a store that any number of threads may attach to: exact over all of them, without locks. */
export function sharedMemoryStore(options: SharedMemoryStoreOptions = {}): SharedMemoryStore {
  checkOptionNames(options, TAKER)
  checkSources(options)
  const of = TAKER.name
  const sizes = {
    maxKeys: checkWhole('maxKeys', options.maxKeys ?? 100_000, { of, least: 16, most: 16_000_000 }),
    maxStateSize: checkWhole('maxStateSize', options.maxStateSize ?? 4, { of, least: 4, most: 16_384 }),
    maxThreads: checkWhole('maxThreads', options.maxThreads ?? 64, { of, most: 1_024 }),
  }
  const layout = layoutFor(sizes)
  const buffer = new SharedArrayBuffer(Math.ceil(layout.totalHalves / 2) * 8)
  const halves = new Int32Array(buffer)
  const secret = drawSecret(options.random ?? systemRandom)
  halves[HEADER.secretLow] = secret.low
  halves[HEADER.secretHigh] = secret.high
  writeHeader(halves, sizes)
  return new SharedMemoryStore(buffer, layout, { clock: options.clock ?? systemClock })
}

/** The store behind a handle, for this thread. */
export function attachSharedMemoryStore(handle: SharedMemoryHandle, options: AttachOptions = {}): SharedMemoryStore {
  checkOptionNames(options, ATTACH_TAKER)
  checkSources(options)
  return attachWithFaults(handle, { clock: options.clock ?? systemClock })
}

/** For tests: like {@link attachSharedMemoryStore}, with a place to die in. */
export function attachWithFaults(handle: SharedMemoryHandle, parts: ThreadParts): SharedMemoryStore {
  if (!(handle?.buffer instanceof SharedArrayBuffer)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'there is no shared memory store to attach to',
      received: handle,
      expected: 'what store.handle() returned, passed on as workerData',
    })
  }
  return new SharedMemoryStore(handle.buffer, layoutFor(readHeader(new Int32Array(handle.buffer))), parts)
}
