import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ApiError } from './api-error.ts'
import { call, callWithEtag, setCsrfToken, urlOf, whenSignedOut } from './client.ts'
import { isReachable } from './connection.ts'

/** Answers every request with this, and notes them. */
function answerWith(answer: () => Response): Request[] {
  const requests: Request[] = []
  vi.stubGlobal('fetch', (url: URL, init: RequestInit) => {
    requests.push(new Request(url, { ...init, body: init.body ?? undefined } as RequestInit))
    return Promise.resolve().then(answer)
  })
  return requests
}

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers })

beforeEach(() => setCsrfToken('token-1'))
afterEach(() => setCsrfToken(''))

describe('urlOf', () => {
  it('fills in the path and puts the rest into the query', () => {
    expect(urlOf('putTier', { name: 'a/b c' }).pathname).toBe('/admin/tiers/a%2Fb%20c')
    expect(urlOf('listAudit', { limit: 5, by: undefined }).search).toBe('?limit=5')
  })
})

describe('call', () => {
  it('sends the token with changes only', async () => {
    const requests = answerWith(() => json({ items: [] }))
    await call('listTiers')
    await call('deleteTier', { parameters: { name: 'gold' }, ifMatch: '"7"' })
    expect(requests.map(({ headers }) => headers.get('x-csrf-token'))).toEqual([null, 'token-1'])
    expect(requests[1]?.headers.get('if-match')).toBe('"7"')
  })

  it('keeps the revision of the answer', async () => {
    answerWith(() => json({ items: [] }, 200, { etag: '"12"' }))
    expect(await callWithEtag('listTiers')).toEqual({ body: { items: [] }, etag: '"12"' })
  })

  it('rejects with the problem document, field by field', async () => {
    const errors = [{ path: '/limit', received: '-1', expected: 'a whole number' }]
    const problem = { code: 'SLUICE_HTTP_INVALID_REQUEST', title: 'Invalid', detail: 'One thing is wrong.', errors }
    answerWith(() => json(problem, 400))
    const failure = await call('listTiers').catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(ApiError)
    expect(failure).toMatchObject({ kind: 'problem', status: 400, title: 'Invalid', fields: errors })
  })

  it('reports the end of a session', async () => {
    const signedOut = vi.fn()
    whenSignedOut(signedOut)
    const problem = { code: 'SLUICE_HTTP_UNAUTHORIZED', title: 'Unauthorized', detail: 'Sign in.' }
    answerWith(() => json(problem, 401))
    await call('listTiers').catch(() => undefined)
    expect(signedOut).toHaveBeenCalledOnce()
  })

  it('knows whether the service answers', async () => {
    answerWith(() => {
      throw new TypeError('Failed to fetch')
    })
    expect(await call('listTiers').catch((error: ApiError) => error.kind)).toBe('offline')
    expect(isReachable.value).toBe(false)
    answerWith(() => json({ items: [] }))
    await call('listTiers')
    expect(isReachable.value).toBe(true)
  })

  it('says so when something else than the service answers', async () => {
    answerWith(() => new Response('<html>', { status: 502 }))
    const failure = await call('listTiers').catch((error: unknown) => error)
    expect(failure).toMatchObject({ kind: 'unreadable', status: 502 })
  })
})
