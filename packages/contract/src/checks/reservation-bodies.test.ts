import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Parsed } from '../schema/body-parser.ts'
import {
  expiryText,
  parseAcquireRequest,
  parseReservationRequest,
  parseReserveRequest,
  parseSettleRequest,
} from './reservation-bodies.ts'

function pathsOf(parsed: Parsed<object>): readonly string[] {
  return parsed.ok ? [] : parsed.problems.map(({ path }) => path)
}

describe('a call for a reservation', () => {
  it('is a check, and how long it may be held', () => {
    const parsed = parseReserveRequest({ userId: 'u', resource: '/a', tokens: 7, expiresAfterMs: 5000 })
    expect(parsed).toEqual({ ok: true, request: { user: 'u', resource: '/a', tokens: 7 }, expiresAfterMs: 5000 })
  })

  it('is held for a minute when it does not say', () => {
    expect(parseReserveRequest({ resource: '/a' })).toMatchObject({ ok: true, expiresAfterMs: 60_000 })
  })

  it.each([
    [{ resource: '/a', expiresAfterMs: 0 }, ['/expiresAfterMs']],
    [{ resource: '/a', expiresAfterMs: 86_400_001 }, ['/expiresAfterMs']],
    [{ resource: '/a', expiresAfterMs: '1m' }, ['/expiresAfterMs']],
    [{ expiresAfterMs: 1.5, tokens: -1 }, ['/resource', '/tokens', '/expiresAfterMs']],
    [{ resource: '/a', maxWaitMs: 1 }, ['/maxWaitMs']],
    [null, ['']],
  ])('is refused as %j', (body, paths) => {
    expect(pathsOf(parseReserveRequest(body))).toEqual(paths)
  })
})

describe('a call for a slot', () => {
  it('is a check, and how long to wait', () => {
    const parsed = parseAcquireRequest({ tenantId: 't', resource: '/a', maxWaitMs: 250 })
    expect(parsed).toEqual({ ok: true, request: { tenant: 't', resource: '/a', tokens: 1 }, maxWaitMs: 250 })
  })

  it.each([['{"resource":"/a"}'], ['{"resource":"/a","maxWaitMs":-0}']])('does not wait for %s', (text) => {
    const parsed = parseAcquireRequest(JSON.parse(text))
    expect(parsed.ok && parsed.maxWaitMs).toBe(0)
  })

  it.each([
    [{ resource: '/a', maxWaitMs: -1 }, ['/maxWaitMs']],
    [{ resource: '/a', maxWaitMs: 30_001 }, ['/maxWaitMs']],
    [{ resource: '/a', expiresAfterMs: 1 }, ['/expiresAfterMs']],
    [[], ['']],
  ])('is refused as %j', (body, paths) => {
    expect(pathsOf(parseAcquireRequest(body))).toEqual(paths)
  })
})

describe('a settlement', () => {
  it('says which reservation and what was used', () => {
    const parsed = parseSettleRequest(JSON.parse('{"reservationId":"r1","tokens":-0}'))
    expect(parsed).toEqual({ ok: true, reservationId: 'r1', tokens: 0 })
  })

  it.each([
    [{}, ['/reservationId', '/tokens']],
    [{ reservationId: 'r1' }, ['/tokens']],
    [{ reservationId: '', tokens: 1 }, ['/reservationId']],
    [{ reservationId: 'x'.repeat(8193), tokens: 1 }, ['/reservationId']],
    [{ reservationId: 'r1', tokens: 1.5 }, ['/tokens']],
    [{ reservationId: 'r1', tokens: 1, userId: 'u' }, ['/userId']],
  ])('is refused as %.40j', (body, paths) => {
    expect(pathsOf(parseSettleRequest(body))).toEqual(paths)
  })
})

describe('a release or heartbeat', () => {
  it('says which reservation', () => {
    const reservationId = 'x'.repeat(8192)
    expect(parseReservationRequest({ reservationId })).toEqual({ ok: true, reservationId })
  })

  it.each([[{}], [{ reservationId: 7 }], [{ reservationId: 'a\nb' }], ['r1']])('is refused as %j', (body) => {
    expect(parseReservationRequest(body).ok).toBe(false)
  })

  it('does not repeat the id in a problem', () => {
    expect(JSON.stringify(parseReservationRequest({ reservationId: 'secret\n' }))).not.toContain('secret')
  })
})

describe('expiryText', () => {
  it('has milliseconds', () => {
    expect(expiryText(Date.UTC(2025, 10, 5, 10, 4, 30, 250))).toBe('2025-11-05T10:04:30.250Z')
  })

  it('is null where nothing ends', () => {
    expect(expiryText(Number.POSITIVE_INFINITY)).toBeNull()
  })

  it('property: is never late, and less than a millisecond early', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 4e12, noNaN: true }), (ms) => {
        const earlyMs = ms - Date.parse(expiryText(ms) ?? '')
        expect(earlyMs).toBeGreaterThanOrEqual(0)
        expect(earlyMs).toBeLessThan(1)
      }),
    )
  })
})
