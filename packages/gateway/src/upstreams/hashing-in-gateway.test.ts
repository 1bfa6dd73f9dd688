import { describe, expect, it } from 'vitest'
import type { UpstreamConfig } from '../config/gateway-config.ts'
import { configOf, routeOf, startGateway, startUpstream } from '../gateway.test.support.ts'
import { createUpstream } from './create-upstream.ts'

/** A gateway with four instances that requests are hashed to; the answer is the number of the instance. */
async function hashing(fields: Partial<UpstreamConfig>) {
  const apps = await Promise.all(
    Array.from({ length: 4 }, (_, index) => startUpstream((_request, response) => void response.end(String(index)))),
  )
  const config = { instances: apps.map(({ url }) => ({ url })), balance: 'hash', ...fields } as const
  const { origin } = await startGateway({
    config: configOf([routeOf()], { app: [] }),
    createUpstream: (name) => createUpstream(name, config),
  })
  /** Instances that requests with these headers went to. */
  return async (headersOf: (index: number) => Record<string, string>, count = 16): Promise<readonly string[]> => {
    const found: string[] = []
    for (let index = 0; index < count; index++) {
      found.push(await (await fetch(origin, { headers: headersOf(index) })).text())
    }
    return found
  }
}

describe('requests that are hashed', () => {
  it.each([
    ['user', { hashBy: 'user' }, (value: string) => ({ 'x-user': value })],
    ['header', { hashBy: 'header:X-Cart' }, (value: string) => ({ 'x-cart': value })],
    ['cookie', { hashBy: 'cookie:cart' }, (value: string) => ({ cookie: `a=1; cart=${value}; sid=same` })],
    ['session', { hashBy: 'session', sessionCookie: 'sid' }, (value: string) => ({ cookie: `cart=1; sid=${value}` })],
  ])('go to one instance for each %s, and to all instances together', async (_name, fields, headersOf) => {
    const instances = await hashing(fields)
    expect(new Set(await instances(() => headersOf('one'))).size).toBe(1)
    const spread = await instances((index) => headersOf(`value-${index}`), 40)
    expect(new Set(spread).size).toBe(4)
    expect(await instances((index) => headersOf(`value-${index}`), 40)).toEqual(spread)
  })

  it('without a value go where their address goes', async () => {
    const instances = await hashing({ hashBy: 'session', sessionCookie: 'sid' })
    const found = await instances((index) => (index % 2 === 0 ? {} : { cookie: 'other=1' }))
    expect(new Set(found).size).toBe(1)
  })
})
