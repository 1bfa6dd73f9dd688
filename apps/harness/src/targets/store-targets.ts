import type { Target, TargetOptions } from '../tests/test-bed.ts'
import { memoryTarget } from './memory-target.ts'
import { redisTarget } from './redis-target.ts'
import { sharedMemoryTarget } from './shared-memory-target.ts'

/** A store that can be chosen on the command line. */
export interface StoreChoice {
  /** What it is and which callers use it, as a phrase. */
  readonly summary: string
  /** Said before the run, when the run shows less than its names promise. */
  readonly notice?: string
  /** Whether `--redis-url` says where it is. */
  readonly takesRedisUrl?: boolean
  readonly open: (setting: TargetOptions) => Target | Promise<Target>
}

/** Stores by name. A run does not mix them. */
export type StoreTable = Readonly<Record<string, StoreChoice>>

/** Every store of the harness; the first is the default. */
export const STORES: StoreTable = {
  shared: {
    summary: 'shared memory, asked by real threads',
    open: sharedMemoryTarget,
  },
  memory: {
    summary: 'the memory of one thread, asked by interleaved tasks of that thread',
    notice:
      'The memory store belongs to one thread: requests are interleaved tasks of it, and --threads has no effect.',
    open: (setting) => memoryTarget(setting),
  },
  redis: {
    summary: 'one Redis, asked by real processes; a server is started for the run',
    takesRedisUrl: true,
    open: redisTarget,
  },
}
