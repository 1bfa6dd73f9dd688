import { describe, expect, it, onTestFinished } from 'vitest'
import { Receiver, status } from '../alerts/alerts.test.support.ts'
import type { RunningService } from '../service.fixture.ts'
import { startService } from '../service.fixture.ts'

// Metrics of webhooks when no receiver answers.

/** The numbers of all metrics whose name begins with `prefix`. */
async function metricsOf(service: RunningService, prefix: string): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${service.origin}/metrics`)).text()
  const samples = [...text.matchAll(/^(\w+(?:\{[^}]*\})?) (\S+)$/gm)]
  return Object.fromEntries(
    samples.filter(([, name]) => name?.startsWith(prefix)).map(([, name, value]) => [name, Number(value)]),
  )
}

/** A service whose first denied check is an alert. */
async function startAlerting(webhook: string): Promise<RunningService> {
  const denials = { threshold: 0, forSeconds: 0, resolveAfterSeconds: 0, windowSeconds: 60, leastSamples: 1 }
  const service = await startService({
    alerts: { options: { 'denial-rate': denials }, webhooks: [webhook] },
  })
  onTestFinished(() => service.stop())
  const block = { dimension: 'user', entity: 'u1', duration: '1h' }
  expect((await service.admin('PUT', '/admin/blocks', { body: block })).status).toBe(200)
  expect((await service.check({ userId: 'u1', resource: '/orders' })).status).toBe(429)
  await service.endWaits(1000)
  return service
}

describe('metrics of webhook deliveries', () => {
  it('count a message that was given up, and its dead letter', async () => {
    const receiver = await Receiver.start(status(400))
    const service = await startAlerting(receiver.origin)
    await receiver.untilPosts(1)
    await expect
      .poll(() => metricsOf(service, 'sluice_webhook_'))
      .toEqual({
        'sluice_webhook_deliveries_total{outcome="delivered"}': 0,
        'sluice_webhook_deliveries_total{outcome="failed"}': 1,
        'sluice_webhook_deliveries_total{outcome="lost"}': 0,
        sluice_webhook_failed_attempts_total: 1,
        sluice_webhook_pending: 0,
        sluice_webhook_dead_letters: 1,
      })
    expect(await metricsOf(service, 'sluice_alerts_firing')).toEqual({ sluice_alerts_firing: 1 })
  })

  it('count attempts that failed and messages that wait for the next', async () => {
    const receiver = await Receiver.start(status(503))
    const service = await startAlerting(receiver.origin)
    await receiver.untilPosts(1)
    await expect
      .poll(() => metricsOf(service, 'sluice_webhook_'))
      .toMatchObject({
        'sluice_webhook_deliveries_total{outcome="failed"}': 0,
        sluice_webhook_failed_attempts_total: 1,
        sluice_webhook_pending: 1,
        sluice_webhook_dead_letters: 0,
      })
  })

  it('count what was delivered', async () => {
    const receiver = await Receiver.start(status(204))
    const service = await startAlerting(receiver.origin)
    await receiver.untilPosts(1)
    await expect
      .poll(() => metricsOf(service, 'sluice_webhook_'))
      .toMatchObject({
        'sluice_webhook_deliveries_total{outcome="delivered"}': 1,
        sluice_webhook_failed_attempts_total: 0,
        sluice_webhook_pending: 0,
      })
  })
})
