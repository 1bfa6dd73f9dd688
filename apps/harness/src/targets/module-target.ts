import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, resolve } from 'node:path'
import type { Clock } from '@sluice/core'
import { HarnessError } from '../tests/harness-error.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'
import { releaseTasks } from '../tests/test-bed.ts'

/** What is tested: any limiter that says yes or no to a key. */
export interface ModuleLimiter {
  tryAcquire(nodeId: string): boolean | Promise<boolean>
  /** Gives a key its full limit back. Without it, the tests after a reset are left out. */
  reset?(nodeId: string): unknown
}

/** What a module exports: a limiter, or a function that makes one for a limit. */
type Exported = ModuleLimiter | ((maxRequests: number) => ModuleLimiter | Promise<ModuleLimiter>)

/** What a module under test is made with. */
export interface ModuleTarget extends Pick<TargetOptions, 'stopwatch'> {
  readonly path: string
  /** The values of MaxRequests to test. */
  readonly maxRequests: readonly number[]
}

const EXPECTED =
  'a module whose export "default", "createLimiter" or "limiter" is a limiter with tryAcquire(nodeId), ' +
  'or a function that returns one for maxRequests'

/** A limiter that a module exports, used by interleaved tasks of this thread. */
export function moduleTarget({ path, maxRequests, stopwatch }: ModuleTarget): Target {
  const exported = exportOf(path)
  if (typeof exported !== 'function' && maxRequests.length !== 1) {
    throw unusable({
      received: `one limiter from ${path}, for ${maxRequests.length} values of MaxRequests`,
      expected: '--max with its limit, or a function that returns a limiter for maxRequests',
    })
  }
  return {
    threads: 1,
    title: basename(path),
    prepare: async (_rule, max) => {
      const limiter = typeof exported === 'function' ? await exported(max) : exported
      if (!isLimiter(limiter))
        throw unusable({ received: `no limiter from the function in ${path}`, expected: EXPECTED })
      return new ModuleTestBed(limiter, stopwatch)
    },
    close: () => Promise.resolve(),
  }
}

class ModuleTestBed implements TestBed {
  readonly #limiter: ModuleLimiter
  readonly #stopwatch: Clock

  constructor(limiter: ModuleLimiter, stopwatch: Clock) {
    this.#limiter = limiter
    this.#stopwatch = stopwatch
  }

  release(burst: Burst): Promise<BurstOutcome> {
    return releaseTasks(burst, this.#stopwatch, async (node) => {
      const isApproved: unknown = await this.#limiter.tryAcquire(node)
      if (typeof isApproved === 'boolean') return isApproved
      // Anything else, such as a decision object, would silently count as an approval.
      throw unusable({
        received: `${typeof isApproved} from tryAcquire`,
        expected: 'true or false, or a promise of it',
      })
    })
  }

  async moveToReset(node: string): Promise<boolean> {
    if (typeof this.#limiter.reset !== 'function') return false
    await this.#limiter.reset(node)
    return true
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function exportOf(path: string): Exported {
  const file = resolve(path)
  if (!existsSync(file)) {
    throw unusable({
      received: `${path}, which does not exist`,
      expected: 'the URL of a service, or the path of a module',
    })
  }
  let loaded: Readonly<Record<string, unknown>>
  try {
    // Loads ES modules as well.
    loaded = createRequire(import.meta.url)(file)
  } catch (cause) {
    throw unusable({
      received: `${path}, which cannot be loaded (${(cause as Error).message})`,
      expected: EXPECTED,
      cause,
    })
  }
  const found = [loaded, loaded['default'], loaded['createLimiter'], loaded['limiter']].find(isUsable)
  if (found === undefined) {
    throw unusable({
      received: `${path} with the exports ${Object.keys(loaded).join(', ') || 'none'}`,
      expected: EXPECTED,
    })
  }
  return found
}

function isUsable(value: unknown): value is Exported {
  return typeof value === 'function' || isLimiter(value)
}

function isLimiter(value: unknown): value is ModuleLimiter {
  return typeof value === 'object' && value !== null && 'tryAcquire' in value && typeof value.tryAcquire === 'function'
}

function unusable(details: {
  readonly received: string
  readonly expected: string
  readonly cause?: unknown
}): HarnessError {
  return new HarnessError('SLUICE_HARNESS_TARGET_FAILED', details)
}
