import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { StreamEvent } from './event-stream.ts'
import { EventStreamReader } from './event-stream.ts'

function read(...pieces: readonly string[]): StreamEvent[] {
  const reader = new EventStreamReader()
  return pieces.flatMap((piece) => reader.push(piece))
}

describe('EventStreamReader', () => {
  it.each([
    ['data: a\n\n', [{ type: 'message', data: 'a' }]],
    ['data:a\n\n', [{ type: 'message', data: 'a' }]],
    ['data:  a\n\n', [{ type: 'message', data: ' a' }]],
    ['event: x\ndata: a\n\n', [{ type: 'x', data: 'a' }]],
    ['event: x\n\ndata: a\n\n', [{ type: 'message', data: 'a' }]],
    ['data: a\ndata: b\n\n', [{ type: 'message', data: 'a\nb' }]],
    ['data\n\n', [{ type: 'message', data: '' }]],
    [': a comment\n\n', []],
    ['id: 1\nretry: 5\nother: x\n\n', []],
    ['data: a\r\n\r\ndata: b\r\rdata: c\n\n', ['a', 'b', 'c'].map((data) => ({ type: 'message', data }))],
    ['data: not ended\n', []],
  ])('reads %j', (text, events) => {
    expect(read(text)).toEqual(events)
  })

  it('reads the same however the text is cut', () => {
    const line = fc.constantFrom('data: a', 'data:b', 'event: x', ':c', '', 'data', 'id: 1')
    const end = fc.constantFrom('\n', '\r', '\r\n')
    const text = fc.array(fc.tuple(line, end)).map((lines) => `${lines.map((parts) => parts.join('')).join('')}\n\n`)
    fc.assert(
      fc.property(text, fc.array(fc.nat(40)), (whole, cuts) => {
        const pieces: string[] = []
        let rest = whole
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        expect(read(...pieces, rest)).toEqual(read(whole))
        expect(read(...whole)).toEqual(read(whole))
      }),
    )
  })
})
