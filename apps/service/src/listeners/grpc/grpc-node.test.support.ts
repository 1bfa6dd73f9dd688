import { expect, onTestFinished } from 'vitest'
import type { RunningNode, RunningService } from '../../service.fixture.ts'
import { startService } from '../../service.fixture.ts'
import type { Settings } from '../../settings/settings.ts'
import type { ClientOptions } from './grpc-client.test.support.ts'
import { GrpcClient } from './grpc-client.test.support.ts'

// A service with the gRPC listener, the rules that its tests ask about, and how they ask.

/** The listener on a free port. */
export const GRPC: Partial<Settings> = { grpc: { port: 0, tls: undefined, deadlineMs: 15 } }

const SHOP = `
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 3, name: users }
  - key: user
    value: staff
    rate_limit: { unlimited: true }
  - key: user
    value: bad
    rate_limit: { unit: day, requests_per_unit: 0 }
  - key: ip
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: tried
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: route
    value: /orders/*
    descriptors:
      - key: user
        rate_limit: { unit: second, requests_per_unit: 2 }
  - key: plan
    rate_limit: { unit: week, requests_per_unit: 5, replaces: [{ name: users }] }
  - key: pool
    value: one
    quota_mode: true
    metadata: { cluster: one, weight: 0.5, spare: false, note: "", zones: [a, null] }
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: pool
    value: two
    quota_mode: true
    metadata: { fallback: { cluster: two } }
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: batch
    rate_limit: { unit: year, requests_per_unit: 1000 }
`

/** Enforces the rules. */
export function enforceShop(node: RunningNode): Promise<void> {
  return enforceDomain(node, SHOP)
}

/** Enforces a domain of envoyproxy/ratelimit. */
export async function enforceDomain(node: RunningNode, text: string): Promise<void> {
  const body = { files: [{ name: 'domain.yaml', text }] }
  const { number } = (await (await node.admin('POST', '/admin/versions/import', { body })).json()) as { number: number }
  const staged = await node.admin('POST', `/admin/versions/${number}/stage`, { body: { stage: 'enforce' } })
  expect(staged.status).toBe(200)
}

/** A client that the end of the test closes. */
export function clientOf(node: RunningNode, options: ClientOptions = {}): GrpcClient {
  const client = new GrpcClient(node, options)
  onTestFinished(() => client.close())
  return client
}

/** A service that enforces the rules, and a client. */
export async function startShop(
  settings: Partial<Settings> = {},
): Promise<{ readonly node: RunningService; readonly client: GrpcClient }> {
  const node = await startService({ ...GRPC, ...settings })
  onTestFinished(() => node.stop())
  await enforceShop(node)
  return { node, client: clientOf(node) }
}

/** A descriptor: `a=1 b=2` is one of two entries. */
export function of(text: string, more: object = {}): object {
  const entries = text.split(' ').map((part) => {
    const [key, value = ''] = part.split('=')
    return { key, value }
  })
  return { entries, ...more }
}

/** A request of the domain `shop`. */
export function shop(...descriptors: readonly (string | object)[]): { readonly descriptors: readonly object[] } {
  const request = { domain: 'shop', descriptors: descriptors.map((one) => (typeof one === 'string' ? of(one) : one)) }
  return request
}
