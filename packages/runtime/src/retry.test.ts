import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Sleep, systemSleep } from './clock-and-random.ts'
import { RetriesExhausted, type RetryNotice, type RetryOptions, retry } from './retry.ts'
import { isRuntimeError } from './runtime-error.ts'

class Failure extends Error {
  readonly retryAfterMs: number | undefined

  constructor(message: string, retryAfterMs?: number) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

/** An operation that fails `failures` times, then succeeds; and options that record the waits instead of waiting. */
function setUp(failures: number, more: Partial<RetryOptions> = {}) {
  const waits: number[] = []
  const attempts: number[] = []
  const sleep: Sleep = (delayMs) => {
    waits.push(delayMs)
    return Promise.resolve()
  }
  const operation = ({ attempt }: { attempt: number }): Promise<string> => {
    attempts.push(attempt)
    return attempt < failures ? Promise.reject(new Failure(`failure ${attempt}`)) : Promise.resolve('fine')
  }
  const options: RetryOptions = { random: () => 0.5, sleep, ...more }
  return { waits, attempts, operation, options }
}

describe('retry', () => {
  it.each([
    { failures: 0, waits: [] },
    { failures: 1, waits: [2000] },
    { failures: 5, waits: [2000, 4000, 8000, 16_000, 32_000] },
  ])('succeeds after $failures failures and waits $waits', async ({ failures, waits }) => {
    const run = setUp(failures)
    await expect(retry(run.operation, run.options)).resolves.toBe('fine')
    expect(run.waits).toEqual(waits)
    expect(run.attempts).toEqual(Array.from({ length: failures + 1 }, (_, attempt) => attempt))
  })

  it('makes 6 calls by default, then rejects with RetriesExhausted that carries the last error', async () => {
    const run = setUp(99)
    const exhausted: unknown = await retry(run.operation, run.options).catch((error: unknown) => error)
    expect(run.attempts).toEqual([0, 1, 2, 3, 4, 5])
    expect(run.waits).toEqual([2000, 4000, 8000, 16_000, 32_000])
    expect(exhausted).toBeInstanceOf(RetriesExhausted)
    expect(exhausted).toMatchObject({
      name: 'RetriesExhausted',
      code: 'SLUICE_RUNTIME_RETRIES_EXHAUSTED',
      calls: 6,
      lastError: new Failure('failure 5'),
      cause: (exhausted as RetriesExhausted).lastError,
      message: expect.stringContaining('6 failures, the last: failure 5'),
    })
    expect(isRuntimeError(exhausted, 'SLUICE_RUNTIME_RETRIES_EXHAUSTED')).toBe(true)
  })

  it.each([
    { maxRetries: 0, calls: 1 },
    { maxRetries: 3, calls: 4 },
    { maxRetries: Number.POSITIVE_INFINITY, calls: 100 },
  ])('makes $calls calls with $maxRetries retries', async ({ maxRetries, calls }) => {
    const run = setUp(99, { maxRetries })
    await retry(run.operation, run.options).catch(() => undefined)
    expect(run.attempts).toHaveLength(calls)
  })

  it('rejects with the error itself when no retry is allowed', async () => {
    const run = setUp(99, { maxRetries: 0 })
    await expect(retry(run.operation, run.options)).rejects.toEqual(new Failure('failure 0'))
  })

  it('also takes an operation that throws or returns at once', async () => {
    const run = setUp(0)
    const operation = ({ attempt }: { attempt: number }): number => {
      if (attempt === 0) throw new Failure('at once')
      return attempt
    }
    await expect(retry(operation, run.options)).resolves.toBe(1)
  })

  it('rejects with the error itself when shouldRetry says no, also after the last retry', async () => {
    const asked: unknown[][] = []
    const shouldRetry = (error: unknown, attempt: number): boolean => {
      asked.push([(error as Error).message, attempt])
      return attempt < 1
    }
    const run = setUp(99, { shouldRetry })
    await expect(retry(run.operation, run.options)).rejects.toEqual(new Failure('failure 1'))
    expect(asked).toEqual([
      ['failure 0', 0],
      ['failure 1', 1],
    ])
    const last = setUp(99, { shouldRetry, maxRetries: 1 })
    await expect(retry(last.operation, last.options)).rejects.toEqual(new Failure('failure 1'))
    expect(last.attempts).toEqual([0, 1])
  })

  it.each([
    { asked: undefined, waitMs: 2000 },
    { asked: -5, waitMs: 2000 },
    { asked: 0, waitMs: 2000 },
    { asked: 1999, waitMs: 2000 },
    { asked: 2001, waitMs: 2001 },
    { asked: 300_000, waitMs: 300_000 },
  ])('waits $waitMs ms when the other side asks for $asked', async ({ asked, waitMs }) => {
    const run = setUp(1, { retryAfterMs: () => asked })
    await retry(run.operation, run.options)
    expect(run.waits).toEqual([waitMs])
  })

  it('takes an infinite retryAfterMs as never, and NaN as an error', async () => {
    const never = setUp(1, { retryAfterMs: () => Number.POSITIVE_INFINITY })
    await expect(retry(never.operation, never.options)).rejects.toThrow('failure 0')
    expect(never.waits).toEqual([])
    const broken = setUp(1, { retryAfterMs: () => Number.NaN })
    await expect(retry(broken.operation, broken.options)).rejects.toMatchObject({
      code: 'SLUICE_RUNTIME_INVALID_OPTION',
    })
  })

  it('never comes earlier than asked, whatever the jitter (property)', async () => {
    const askedMs = fc.option(fc.integer({ min: 0, max: 200_000 }), { nil: undefined })
    const randoms = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 9, maxLength: 9 })
    await fc.assert(
      fc.asyncProperty(fc.array(askedMs, { minLength: 9, maxLength: 9 }), randoms, async (asked, jitters) => {
        let drawn = 0
        const run = setUp(9, {
          maxRetries: 9,
          random: () => jitters[drawn++] ?? 0,
          retryAfterMs: (error) => asked[Number((error as Error).message.split(' ')[1])],
        })
        await retry(run.operation, run.options)
        expect(run.waits).toHaveLength(9)
        for (const [attempt, waitMs] of run.waits.entries()) {
          const [leastMs, mostMs] = [0.75, 1.25].map((jitter) => Math.min(60_000, 2000 * 2 ** attempt * jitter))
          expect(waitMs).toBeGreaterThanOrEqual(Math.max(asked[attempt] ?? 0, leastMs!))
          expect(waitMs).toBeLessThanOrEqual(Math.max(asked[attempt] ?? 0, mostMs!))
        }
      }),
    )
  })

  it('calls onRetry for every failure that is retried', async () => {
    const notices: RetryNotice[] = []
    const run = setUp(99, { maxRetries: 2, onRetry: (notice) => notices.push(notice) })
    await retry(run.operation, run.options).catch(() => undefined)
    expect(notices).toEqual([
      { attempt: 0, error: new Failure('failure 0'), delayMs: 2000 },
      { attempt: 1, error: new Failure('failure 1'), delayMs: 4000 },
    ])
  })

  it.each([{ maxRetries: -1 }, { maxRetries: 1.5 }, { maxRetries: Number.NaN }, { baseMs: -1 }, { capMs: 1 }])(
    'rejects %o before the first call',
    async (options) => {
      const run = setUp(0, options)
      await expect(retry(run.operation, run.options)).rejects.toMatchObject({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
      expect(run.attempts).toEqual([])
    },
  )
})

describe('retry with a signal', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('does not begin when the signal was aborted before', async () => {
    const run = setUp(0, { signal: AbortSignal.abort('early') })
    await expect(retry(run.operation, run.options)).rejects.toBe('early')
    expect(run.attempts).toEqual([])
  })

  it('rejects at once during a wait, with no timer and no listener left', async () => {
    vi.useFakeTimers()
    const controller = new AbortController()
    const run = setUp(99, { sleep: systemSleep, signal: controller.signal })
    const outcome = retry(run.operation, run.options)
    const failed = expect(outcome).rejects.toBe('enough')
    await vi.advanceTimersByTimeAsync(2500)
    expect(run.attempts).toEqual([0, 1])
    expect(vi.getTimerCount()).toBe(1)
    controller.abort('enough')
    await failed
    expect(run.attempts).toEqual([0, 1])
    expect(vi.getTimerCount()).toBe(0)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('hands the signal to the operation and makes no further try when it aborts during a call', async () => {
    const controller = new AbortController()
    const run = setUp(0, { signal: controller.signal })
    const seen: unknown[] = []
    const operation = ({ signal }: { signal: AbortSignal | undefined }): Promise<never> => {
      seen.push(signal)
      controller.abort('meanwhile')
      return Promise.reject(new Failure('own error'))
    }
    await expect(retry(operation, run.options)).rejects.toBe('meanwhile')
    expect(seen).toEqual([controller.signal])
    expect(run.waits).toEqual([])
  })

  it('makes no further try when a sleep resolves in spite of the abort', async () => {
    const controller = new AbortController()
    const sleep = async (): Promise<void> => controller.abort('late')
    const run = setUp(99, { sleep, signal: controller.signal })
    await expect(retry(run.operation, run.options)).rejects.toBe('late')
    expect(run.attempts).toEqual([0])
  })

  it('keeps a success that came after the abort', async () => {
    const controller = new AbortController()
    const run = setUp(0, { signal: controller.signal })
    const operation = (): Promise<string> => {
      controller.abort()
      return Promise.resolve('fine')
    }
    await expect(retry(operation, run.options)).resolves.toBe('fine')
  })
})
