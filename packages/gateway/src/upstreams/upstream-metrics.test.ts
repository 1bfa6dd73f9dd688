import { MetricRegistry, renderMetrics } from '@sluice/runtime'
import { expect, it } from 'vitest'
import type { Upstream } from './upstream.ts'
import { watchUpstreams } from './upstream-metrics.ts'
import { attemptOn, FAILURE, fakeUpstream, instancesOf, noInstanceOf } from './upstreams.test.support.ts'

function linesOf(registry: MetricRegistry): string[] {
  return renderMetrics(registry.snapshot())
    .body.split('\n')
    .filter((line) => line.startsWith('sluice_gateway_') && !line.endsWith(' 0'))
}

it('metrics of upstreams have one series for each name of the configuration, whatever DNS says', () => {
  const registry = new MetricRegistry()
  const orders = fakeUpstream({
    instances: [...instancesOf(2), { url: 'http://orders:8080' }],
    concurrency: { mode: 'fixed', limit: 1 },
    health: { passive: { failures: 1 } },
  })
  let upstreams: Upstream[] = [orders.upstream]
  watchUpstreams(registry, () => upstreams)
  attemptOn(orders.upstream)
  attemptOn(orders.upstream).finish(FAILURE)
  noInstanceOf(orders.upstream)
  for (let retry = 0; retry < 13; retry++) orders.upstream.takeRetry(0.2)
  const expected = [
    'sluice_gateway_upstream_instances{upstream="orders",state="available"} 1',
    'sluice_gateway_upstream_instances{upstream="orders",state="paused"} 1',
    'sluice_gateway_upstream_instances{upstream="orders",state="unresolved"} 1',
    'sluice_gateway_upstream_in_flight{upstream="orders"} 1',
    'sluice_gateway_upstream_concurrency_limit{upstream="orders"} 2',
    'sluice_gateway_turned_away_total{upstream="orders",reason="no-capacity"} 1',
    'sluice_gateway_retries_over_budget_total{upstream="orders"} 3',
  ]
  expect(linesOf(registry)).toEqual(expected)
  // Counters are counted once, however often they are read.
  expect(linesOf(registry)).toEqual(expected)
  upstreams = []
  expect(linesOf(registry)).toEqual(expected.slice(-2))
})
