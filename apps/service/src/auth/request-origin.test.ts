import { describe, expect, it, onTestFinished } from 'vitest'
import { startService } from '../service.fixture.ts'
import { ClientAddresses } from './request-origin.ts'

const PROXY = '10.0.0.1'
const addresses = new ClientAddresses(['10.0.0.0/8', 'fd00::/8'])

function clientOf(remoteAddress: string, forwarded?: string): string {
  return addresses.of({ remoteAddress, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } })
}

describe('the address of a client', () => {
  it('is that of the connection, unless that is a trusted proxy', () => {
    expect(clientOf('192.0.2.1')).toBe('192.0.2.1')
    expect(clientOf('192.0.2.1', '203.0.113.7')).toBe('192.0.2.1')
    expect(clientOf('', '203.0.113.7')).toBe('')
    expect(clientOf(PROXY)).toBe(PROXY)
  })

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['198.51.100.9, 203.0.113.7', '203.0.113.7'],
    ['203.0.113.7, 10.0.0.2,fd00::2', '203.0.113.7'],
    ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
    // What is before an entry that is no address may be made up.
    ['203.0.113.7, unknown', PROXY],
    ['203.0.113.7, unknown, 10.0.0.2', '10.0.0.2'],
    ['', PROXY],
  ])('behind a trusted proxy with X-Forwarded-For %j is %s', (forwarded, address) => {
    expect(clientOf(PROXY, forwarded)).toBe(address)
    expect(clientOf(`::ffff:${PROXY}`, forwarded)).toBe(address === PROXY ? `::ffff:${PROXY}` : address)
  })

  it('is searched in a bounded number of entries', () => {
    const hops = Array.from({ length: 100 }, (_, index) => `10.0.1.${index}`)
    expect(clientOf(PROXY, ['203.0.113.7', ...hops].join(','))).toBe('10.0.1.68')
  })
})

describe('failed attempts behind a trusted proxy', () => {
  const statusOf = async (origin: string, client: string): Promise<number> => {
    const headers = { Authorization: 'Bearer nothing', 'X-Forwarded-For': client }
    return (await fetch(`${origin}/admin/tiers`, { headers })).status
  }

  it('are counted for the client, so that one does not use up the attempts of others', async () => {
    const { origin, stop } = await startService({ trustedProxies: ['127.0.0.1'] })
    onTestFinished(stop)
    for (let attempt = 0; attempt < 20; attempt++) expect(await statusOf(origin, '203.0.113.7')).toBe(401)
    expect(await statusOf(origin, '203.0.113.7')).toBe(429)
    expect(await statusOf(origin, '203.0.113.8')).toBe(401)
  })

  it('are counted for the connection if the proxy is not trusted, whatever it sends', async () => {
    const { origin, stop } = await startService()
    onTestFinished(stop)
    for (let attempt = 0; attempt < 20; attempt++) expect(await statusOf(origin, `203.0.113.${attempt}`)).toBe(401)
    expect(await statusOf(origin, '203.0.113.99')).toBe(429)
  })
})

it('takes a client for secure by TLS of the listener, unless a trusted proxy says otherwise', () => {
  const secured = new ClientAddresses(['10.0.0.0/8'], true)
  expect(secured.target({ headers: {}, remoteAddress: '192.0.2.7' }).isSecure).toBe(true)
  const headers = { 'x-forwarded-proto': 'http' }
  expect(secured.target({ headers, remoteAddress: '10.0.0.1' }).isSecure).toBe(false)
  expect(secured.target({ headers, remoteAddress: '192.0.2.7' }).isSecure).toBe(true)
})
