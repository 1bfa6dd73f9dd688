import type { Client } from '@sluice/client'
import { createClient, isClientError } from '@sluice/client'
import type { CheckAnswer } from '@sluice/contract'
import type { Clock, Random, Rule } from '@sluice/core'
import { systemRandom } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { HarnessError } from '../tests/harness-error.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'
import { approvalsOf } from '../tests/test-bed.ts'

/** So long that nothing refills while a test runs: a service counts in real time. */
const WINDOW_SECONDS = 30 * 86_400

const TIMEOUT_MS = 30_000

/** Options of the calls to a service under test. */
export interface ServiceTarget extends Pick<TargetOptions, 'threads' | 'stopwatch'> {
  readonly url: string
  /** An API key that may change rules and reset counters. */
  readonly apiKey: string | undefined
  readonly random?: Random
}

/**
 * A running service, called over HTTP by `threads` callers at a time. Each test bed has a rule of its own, for a
 * resource that nothing else uses, which is removed afterwards. A reset is one of the admin API, because a window
 * takes too long to end.
 */
export async function serviceTarget(target: ServiceTarget): Promise<Target> {
  const { url, apiKey, threads, stopwatch, random = systemRandom } = target
  const tier = `sluice-harness-${random.nextUint32().toString(36)}${random.nextUint32().toString(36)}`
  // A check is one request, so that callers compete; none is made twice, because that would count twice.
  const client = createClient({ url, token: apiKey, timeoutMs: TIMEOUT_MS, retry: false, batch: false })
  // Only callers of an entitled tier may use the burst of a hybrid rule.
  await orFail('put a tier', client.call('putTier', { parameters: { name: tier }, body: { entitled: true } }))
  let beds = 0
  return {
    threads,
    windowSeconds: WINDOW_SECONDS,
    prepare: (rule) =>
      ServiceTestBed.prepare(rule, { client, threads, stopwatch, tier, resource: `/${tier}/${++beds}` }),
    close: () => orFail('remove the tier', client.call('deleteTier', { parameters: { name: tier } })),
  }
}

interface ServiceTestBedParts {
  readonly client: Client
  readonly threads: number
  readonly stopwatch: Clock
  readonly tier: string
  readonly resource: string
}

class ServiceTestBed implements TestBed {
  readonly #parts: ServiceTestBedParts

  private constructor(parts: ServiceTestBedParts) {
    this.#parts = parts
  }

  static async prepare(rule: Rule, parts: ServiceTestBedParts): Promise<TestBed> {
    const { client, resource } = parts
    const rules = [{ ...rule, dimension: 'user' }]
    await orFail('put a rule', client.call('putRateLimits', { body: { resource, rules, note: 'harness' } }))
    return new ServiceTestBed(parts)
  }

  async release(burst: Burst): Promise<BurstOutcome> {
    const { client, threads, stopwatch, tier, resource } = this.#parts
    const startMicros = stopwatch.nowMicros()
    const approvedPerNode = await approvalsOf(burst, threads, async (userId) =>
      isApproval(await orFail('check', client.check({ resource, tier, userId })), resource),
    )
    return { approvedPerNode, ms: (stopwatch.nowMicros() - startMicros) / MICROS_PER_MS }
  }

  async moveToReset(node: string): Promise<boolean> {
    const { client, resource } = this.#parts
    await orFail('reset counters', client.call('reset', { body: { resource, userId: node, note: 'harness' } }))
    return true
  }

  async close(): Promise<void> {
    const { client, resource } = this.#parts
    await orFail('remove the rule', client.call('deleteRateLimits', { parameters: { resource } }))
  }
}

/** Whether a request is approved. Throws unless the rule of the test decided it, by its counter. */
function isApproval({ allowed, reason, rule, failure }: CheckAnswer, resource: string): boolean {
  const isDecided = (reason === 'allowed' || reason === 'limit') && failure === undefined
  if (isDecided && rule.startsWith(resource)) return allowed
  throw targetFailed({
    received: failure === undefined ? `"${reason}" by rule "${rule}"` : `a decision by failure mode (${failure.cause})`,
    expected:
      `a decision by the rule for ${resource}: no exemption or other rule for its caller, and a store that ` +
      'answers',
  })
}

async function orFail<T>(what: string, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (cause) {
    if (!isClientError(cause)) throw cause
    const advice =
      cause.status === 401 || cause.status === 403
        ? 'SLUICE_API_KEY with the role editor or admin'
        : 'a service that answers and takes rules by its admin API'
    throw targetFailed({
      received: `${cause.code} on the attempt to ${what} (${cause.detail})`,
      expected: advice,
      cause,
    })
  }
}

function targetFailed(details: {
  readonly received: string
  readonly expected: string
  readonly cause?: unknown
}): HarnessError {
  return new HarnessError('SLUICE_HARNESS_TARGET_FAILED', details)
}
