import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatTraceparent, isSampled, parseTraceparent } from './tracing.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

describe('parseTraceparent', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, 1],
    [`00-${TRACE}-${SPAN}-00`, 0],
    [` 00-${TRACE}-${SPAN}-03 `, 3],
    // A later version may say more.
    [`cc-${TRACE}-${SPAN}-01-what-the-future-brings`, 1],
  ])('reads %s', (header, flags) => {
    expect(parseTraceparent(header)).toEqual({ traceId: TRACE, spanId: SPAN, flags })
  })

  it.each([
    undefined,
    '',
    [`00-${TRACE}-${SPAN}-01`],
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01x`,
    'x'.repeat(100_000),
  ])('takes %j for none', (header) => {
    expect(parseTraceparent(header)).toBeUndefined()
  })

  it('reads what it writes, of the flags only whether it is recorded (property)', () => {
    const hex = (length: number) =>
      fc
        .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
        .map((all) => all.join(''))
    const parents = fc.record({ traceId: hex(32), spanId: hex(16), flags: fc.integer({ min: 0, max: 255 }) })
    fc.assert(
      fc.property(parents, (parent) => {
        fc.pre(/[1-9a-f]/.test(parent.traceId) && /[1-9a-f]/.test(parent.spanId))
        expect(parseTraceparent(formatTraceparent(parent))).toEqual({ ...parent, flags: parent.flags % 2 })
        expect(isSampled(parent)).toBe(parent.flags % 2 === 1)
      }),
    )
  })
})
