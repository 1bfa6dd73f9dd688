import type { LiveSample, ReadinessReason, TopAnswer } from '@sluice/contract'
import { describe, expect, it } from 'vitest'
import { sampleFrame, sampleLine } from './live-view.ts'
import type { Paint } from './terminal.ts'

const SAMPLE: LiveSample = {
  at: Date.UTC(2027, 0, 1, 12, 30, 15, 400),
  spanMs: 1000,
  checks: 1200,
  denials: 37,
  withoutStore: 4,
  storeErrors: 2,
  storeP50Ms: 0.31,
  storeP99Ms: 17.2,
  resources: [
    { name: '/small', checks: 100, denials: 0 },
    { name: '/large', checks: 1100, denials: 37 },
  ],
  regions: [{ name: 'EU', checks: 1200, denials: 37 }],
  nodes: 1,
  version: 12,
  configAgeMs: 400,
  inFlight: 3,
  breaker: 'closed',
  top: [],
  firingAlerts: 1,
}

const TOP: TopAnswer = {
  spanMs: 600_000,
  nodes: 1,
  dimensions: [
    { dimension: 'user', entries: [{ entity: 'user-123', denials: 411, error: 3 }] },
    { dimension: 'ip', entries: [] },
  ],
}

/** Marks what is coloured with the first letter of its colour. */
const marked = (colour: string) => (text: string) => `<${colour}>${text}</>`
const MARKS: Paint = { green: marked('g'), yellow: marked('y'), red: marked('r'), dim: marked('d'), bold: marked('b') }
const same = (text: string): string => text
const NO_PAINT: Paint = { green: same, yellow: same, red: same, dim: same, bold: same }

const SIZE = { columns: 80, rows: 40, url: 'http://127.0.0.1:8080', reasons: [], paint: NO_PAINT }

const REASONS = [{ code: 'redis-unreachable', message: 'Redis is unreachable. Check REDIS_URL.' }] as const

describe('sampleLine', () => {
  it('says it all in one line', () => {
    expect(sampleLine(SAMPLE)).toBe(
      '2027-01-01T12:30:15Z  checks 1200/s  denied 37/s (3.1 %)  store p50 0.3 ms p99 17 ms  errors 2  in flight ' +
        '3  version 12  alerts 1',
    )
  })

  it('ends with what is wrong with the service', () => {
    expect(sampleLine(SAMPLE, REASONS)).toMatch(/ {2}alerts 1 {2}DEGRADED redis-unreachable$/)
  })

  it('gives rates for each second, whatever the span', () => {
    const quiet = { ...SAMPLE, spanMs: 4000, checks: 10, denials: 0, storeP50Ms: null, storeP99Ms: null }
    expect(sampleLine(quiet)).toContain('checks 2.5/s  denied 0/s (0.0 %)  store p50 - p99 -')
    expect(sampleLine({ ...quiet, checks: 0 })).toContain('checks 0/s  denied 0/s (0 %)')
  })
})

describe('sampleFrame', () => {
  it('begins at the top, most checked resource first, then who is denied most', () => {
    const [head, ...rest] = sampleFrame(SAMPLE, { ...SIZE, top: TOP }).split('\n')
    expect(head).toBe('\u001B[H\u001B[JSluice at http://127.0.0.1:8080   12:30:15 UTC   Ctrl-C to quit')
    const found = rest.map((line) => line.split(/ {2,}/)[0])
    expect(found).toEqual(expect.arrayContaining(['RESOURCE', '/large', '/small', 'REGION', 'EU', 'MOST DENIED: user']))
    expect(found.indexOf('/large')).toBeLessThan(found.indexOf('/small'))
    expect(rest).toContainEqual(expect.stringMatching(/^user-123 +411$/))
    expect(rest.join('\n')).not.toContain('MOST DENIED: ip')
  })

  it('says below the title what is wrong with the service', () => {
    const [, second] = sampleFrame(SAMPLE, { ...SIZE, top: TOP, reasons: REASONS }).split('\n')
    expect(second).toBe('DEGRADED: Redis is unreachable. Check REDIS_URL.')
  })

  it('colours what to look at, and nothing when all is well', () => {
    const shown = (sample: LiveSample, reasons: readonly ReadinessReason[] = []): string =>
      sampleFrame(sample, { ...SIZE, top: undefined, reasons, paint: MARKS })
    const troubled = shown(SAMPLE, REASONS)
    expect(troubled).toContain('<b>Sluice at ')
    expect(troubled).toContain('<r>DEGRADED: Redis is unreachable. Check REDIS_URL.</>')
    expect(troubled).toContain('<y>denied 37/s (3.1 %)</>')
    expect(troubled).toContain('<r>errors 2</>   <r>decided without it 4</>')
    expect(troubled).toContain('<r>alerts 1</>')
    const well = shown({ ...SAMPLE, denials: 0, storeErrors: 0, withoutStore: 0, firingAlerts: 0 })
    expect(well).not.toMatch(/<[yr]>/)
  })

  it('fits on the screen, and leaves no commands to who names things', () => {
    const long = { ...SAMPLE, resources: [{ name: `/\u001B[2J${'x'.repeat(100)}`, checks: 1, denials: 0 }] }
    const picture = sampleFrame(long, { ...SIZE, top: TOP, columns: 30, rows: 9 })
    const lines = picture.replace('\u001B[H\u001B[J', '').trimEnd().split('\n')
    expect(lines).toHaveLength(8)
    expect(Math.max(...lines.map((line) => line.length))).toBe(30)
    expect(lines.join('')).not.toContain('\u001B')
  })
})
