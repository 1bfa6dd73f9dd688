import type { LogFields } from '@sluice/runtime'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import type { UpstreamConfig } from '../config/gateway-config.ts'
import { createUpstream, type UpstreamParts } from './create-upstream.ts'
import type { Attempt, BalancedRequest, NoInstance, Upstream } from './upstream.ts'

/** Outcomes that tests report. */
export const OK = { kind: 'response', status: 200, headersMs: 1 } as const
export const FAILURE = { kind: 'failure' } as const
export const CANCELLED = { kind: 'cancelled' } as const

/** An upstream on a fake clock, with the lines that it logged. */
export interface FakeUpstream {
  readonly upstream: Upstream
  readonly timers: FakeTimers
  readonly lines: { readonly level: 'info' | 'warn'; readonly message: string; readonly fields: LogFields }[]
}

export function fakeUpstream(config: UpstreamConfig, parts: UpstreamParts = {}): FakeUpstream {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const lines: FakeUpstream['lines'] = []
  const log: UpstreamParts['log'] = {
    info: (message, fields = {}) => void lines.push({ level: 'info', message, fields }),
    warn: (message, fields = {}) => void lines.push({ level: 'warn', message, fields }),
  }
  const nowMs = (): number => clock.nowMicros() / 1000
  const upstream = createUpstream('orders', config, { nowMs, timers, random: seededRandom(1), log, ...parts })
  return { upstream, timers, lines }
}

/** `count` instances that nothing listens on: tests that send nothing need no servers. */
export function instancesOf(count: number, weights: readonly number[] = []): UpstreamConfig['instances'] {
  return Array.from({ length: count }, (_, index) => ({ url: urlOf(index + 1), weight: weights[index] ?? 1 }))
}

export function urlOf(number: number): string {
  return `http://10.0.0.${number}:8080`
}

/** An attempt; fails the test without one. */
export function attemptOn(upstream: Upstream, request: Partial<BalancedRequest> = {}, tried?: Set<string>): Attempt {
  const chosen = upstream.choose({ hashKey: undefined, priority: 1, ...request }, tried)
  if (isNoInstance(chosen)) throw new Error(`no instance: ${chosen.reason}`)
  return chosen
}

/** Why there is none; fails the test if there is one. */
export function noInstanceOf(upstream: Upstream, request: Partial<BalancedRequest> = {}): NoInstance {
  const chosen = upstream.choose({ hashKey: undefined, priority: 1, ...request })
  if (isNoInstance(chosen)) return chosen
  throw new Error(`${chosen.instance} was chosen`)
}

export function isNoInstance(chosen: Attempt | NoInstance): chosen is NoInstance {
  return 'reason' in chosen
}

/** How many of `count` requests, each answered at once, every instance gets. */
export function countsOf(upstream: Upstream, count: number, keyOf?: (index: number) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (let index = 0; index < count; index++) {
    const attempt = attemptOn(upstream, { hashKey: keyOf?.(index) })
    counts[attempt.instance] = (counts[attempt.instance] ?? 0) + 1
    attempt.finish(OK)
  }
  return counts
}
