import { describe, expect, it } from 'vitest'
import { wasNeverSent } from './retry-safety.ts'

function failed(properties: object, cause?: unknown): Error {
  return Object.assign(new TypeError('fetch failed', { cause }), properties)
}

const refused = failed({ code: 'ECONNREFUSED', syscall: 'connect' })
const reset = failed({ code: 'ECONNRESET', syscall: 'read' })

describe('a request', () => {
  it.each<[string, unknown]>([
    ['a refused connection', failed({}, refused)],
    ['an unknown host name', failed({}, failed({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }))],
    ['a connection that took too long', failed({}, failed({ code: 'UND_ERR_CONNECT_TIMEOUT' }))],
    ['a system that says so in another way', failed({}, failed({ code: 'ETIMEDOUT', syscall: 'connect' }))],
    ['several addresses that all refuse', failed({}, new AggregateError([refused, refused], 'both'))],
    ['a deeper cause', failed({}, failed({}, failed({}, refused)))],
  ])('was never sent with %s', (_, error) => {
    expect(wasNeverSent(error)).toBe(true)
  })

  it.each<[string, unknown]>([
    ['a connection that broke', failed({}, reset)],
    ['a server that hung up', failed({}, failed({ code: 'UND_ERR_SOCKET' }))],
    ['several addresses of which one broke off', failed({}, new AggregateError([refused, reset], 'both'))],
    ['no cause, as in browsers', new TypeError('Failed to fetch')],
    ['something that is no error', 'ECONNREFUSED'],
    ['several of nothing', new AggregateError([], 'none')],
  ])('may have been sent with %s', (_, error) => {
    expect(wasNeverSent(error)).toBe(false)
  })

  it('has causes that go in a circle', () => {
    const circle = new Error('a')
    circle.cause = circle
    expect(wasNeverSent(circle)).toBe(false)
  })
})
