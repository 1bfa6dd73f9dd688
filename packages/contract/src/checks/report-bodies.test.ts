import { describe, expect, it } from 'vitest'
import { MOST_REPORTS, parseReportRequest } from './report-bodies.ts'

const FAILED = { resource: '/orders', method: 'POST', failed: true }

describe('reports', () => {
  it('are of one call or of several', () => {
    const well = { resource: 'checkout', failed: false }
    expect(parseReportRequest({ reports: [FAILED] })).toEqual({ ok: true, reports: [FAILED] })
    expect(parseReportRequest({ reports: [FAILED, well] })).toEqual({ ok: true, reports: [FAILED, well] })
  })

  it('are refused as a whole, with everything that is wrong and where it stands', () => {
    const reports = [FAILED, { resource: 'a/b' }, { ...FAILED, failed: 'yes', status: 500 }, 7]
    expect(parseReportRequest({ reports })).toEqual({
      ok: false,
      problems: [
        { path: '/reports/1/resource', received: '"a/b"', expected: expect.stringContaining('a path') },
        { path: '/reports/1/failed', received: 'nothing', expected: 'true or false' },
        { path: '/reports/2/failed', received: '"yes"', expected: 'true or false' },
        { path: '/reports/2/status', received: 'an unknown field', expected: 'only resource, failed, method' },
        { path: '/reports/3', received: '7', expected: 'a JSON object with "resource" and "failed"' },
      ],
      unlisted: 0,
    })
  })

  it.each([[{}], [{ reports: [] }], [{ reports: FAILED }], [[FAILED]], [FAILED], [null]])('are not %j', (body) => {
    expect(parseReportRequest(body).ok).toBe(false)
  })

  it(`are at most ${MOST_REPORTS}, and what is wrong with them is listed as far as it fits`, () => {
    const many = (count: number, entry: unknown): object => ({ reports: Array.from({ length: count }, () => entry) })
    expect(parseReportRequest(many(MOST_REPORTS, FAILED)).ok).toBe(true)
    expect(parseReportRequest(many(MOST_REPORTS + 1, FAILED)).ok).toBe(false)
    const refused = parseReportRequest(many(MOST_REPORTS, {}))
    expect(refused).toMatchObject({ ok: false, unlisted: 2 * MOST_REPORTS - 64 })
    expect(refused.ok ? [] : refused.problems).toHaveLength(64)
  })
})
