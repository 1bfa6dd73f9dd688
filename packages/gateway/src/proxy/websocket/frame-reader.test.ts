import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closeFrame, FrameReader } from './frame-reader.ts'
import { MessageLimit } from './message-limit.ts'

interface Frame {
  readonly opcode: number
  readonly isLast: boolean
  readonly length: number
}

function bytesOf({ opcode, isLast, length }: Frame, isMasked: boolean): Buffer {
  const first = (isLast ? 0x80 : 0) | opcode
  const mask = isMasked ? 0x80 : 0
  let head: Buffer
  if (length < 126) head = Buffer.from([first, mask | length])
  else if (length < 65_536) head = Buffer.from([first, mask | 126, length >> 8, length & 0xff])
  else {
    head = Buffer.alloc(10)
    head[0] = first
    head[1] = mask | 127
    head.writeBigUInt64BE(BigInt(length), 2)
  }
  // The payload looks like frame headers, so that a reader that loses its place counts wrong.
  return Buffer.concat([head, ...(isMasked ? [Buffer.from([1, 2, 3, 4])] : []), Buffer.alloc(length, 0x81)])
}

/** Messages of one or several frames, with control frames in between. */
const payloadLength = fc.oneof(fc.nat(130), fc.constantFrom(125, 126, 127, 65_535, 65_536, 70_000))
const control = fc.record({ opcode: fc.constantFrom(8, 9, 10), isLast: fc.constant(true), length: fc.nat(125) })
const message = fc
  .tuple(fc.constantFrom(1, 2), fc.array(fc.tuple(payloadLength, fc.option(control)), { minLength: 1, maxLength: 4 }))
  .map(([opcode, parts]) =>
    parts.flatMap(([size, between], index): Frame[] => [
      { opcode: index === 0 ? opcode : 0, isLast: index === parts.length - 1, length: size },
      ...(between === null ? [] : [between]),
    ]),
  )
const messages = fc.array(message, { maxLength: 5 }).map((list) => list.flat())

describe('frames', () => {
  it('are counted alike, however they are cut into chunks', () => {
    fc.assert(
      fc.property(messages, fc.boolean(), fc.array(fc.integer({ min: 1, max: 9000 })), (frames, isMasked, cuts) => {
        const stream = Buffer.concat(frames.map((frame) => bytesOf(frame, isMasked)))
        const reader = new FrameReader(isMasked)
        let counted = 0
        let at = 0
        for (const cut of [...cuts, stream.length]) {
          const chunk = stream.subarray(at, at + cut)
          at += chunk.length
          counted += reader.read(chunk).messages
        }
        expect(counted).toBe(frames.filter(({ opcode }) => opcode !== 0).length)
        expect([reader.isAtBoundary, reader.isBroken]).toEqual([true, false])
      }),
    )
  })

  it('end where the next one begins', () => {
    fc.assert(
      fc.property(messages, fc.integer({ min: 0, max: 300 }), (frames, cut) => {
        const parts = frames.map((frame) => bytesOf(frame, false))
        const stream = Buffer.concat(parts)
        const ends = parts.map((_, index) => parts.slice(0, index + 1).reduce((sum, part) => sum + part.length, 0))
        const reader = new FrameReader(false)
        reader.read(stream.subarray(0, cut))
        const next = ends.find((end) => end > cut)
        expect(reader.read(stream.subarray(cut)).firstEnd).toBe(next === undefined ? -1 : next - cut)
      }),
    )
  })

  it('one byte at a time are the same', () => {
    const reader = new FrameReader(true)
    const stream = bytesOf({ opcode: 2, isLast: true, length: 300 }, true)
    let counted = 0
    for (const byte of stream) counted += reader.read(Uint8Array.of(byte)).messages
    expect([counted, reader.isAtBoundary]).toEqual([1, true])
  })

  it.each([
    ['an unmasked frame of a client', true, [0x81, 0x00]],
    ['a masked frame of a server', false, [0x81, 0x80, 0, 0, 0, 0]],
    ['an unknown opcode', false, [0x83, 0x00]],
    ['an unknown control opcode', false, [0x8b, 0x00]],
    ['a control frame in parts', false, [0x09, 0x00]],
    ['a long control frame', false, [0x89, 0x7e, 0x00, 0x7e]],
    ['a continuation of nothing', false, [0x80, 0x00]],
    ['a message inside another', false, [0x01, 0x00, 0x81, 0x00]],
    ['a length that no one can send', false, [0x82, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0]],
  ])('are broken by %s', (_title, isMasked, bytes) => {
    const reader = new FrameReader(isMasked)
    reader.read(Uint8Array.from(bytes))
    expect(reader.isBroken).toBe(true)
    expect(reader.read(Uint8Array.from([0x81, 0x00]))).toEqual({ messages: 0, firstEnd: -1 })
  })

  it('never fail, whatever comes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.boolean(), (chunks, isMasked) => {
        const reader = new FrameReader(isMasked)
        for (const chunk of chunks) expect(reader.read(chunk).messages).toBeLessThanOrEqual(chunk.length)
      }),
    )
  })

  it('that close have a code and a reason', () => {
    expect([...closeFrame(1008, 'no')]).toEqual([0x88, 4, 0x03, 0xf0, 0x6e, 0x6f])
  })
})

describe('the limit of messages', () => {
  const rates = { messagesPerSecond: 2, bytesPerSecond: 100, burstSeconds: 2 }

  it('is the burst at once, and the rate over time', () => {
    const limit = new MessageLimit(rates, 0)
    expect(limit.take(4, 10, 0)).toBe(true)
    expect(limit.take(1, 0, 499)).toBe(false)
    const patient = new MessageLimit(rates, 0)
    expect(patient.take(4, 10, 0)).toBe(true)
    expect([patient.take(1, 0, 500), patient.take(1, 0, 1000), patient.take(1, 0, 1400)]).toEqual([true, true, false])
  })

  it('counts bytes for themselves', () => {
    const limit = new MessageLimit(rates, 0)
    expect([limit.take(0, 200, 0), limit.take(0, 50, 500), limit.take(0, 1, 500)]).toEqual([true, true, false])
  })

  it('may be off for one of both, and survives a clock that goes back', () => {
    const limit = new MessageLimit({ ...rates, messagesPerSecond: Number.POSITIVE_INFINITY }, 1000)
    expect(limit.take(1e9, 1, 1000)).toBe(true)
    expect(limit.take(1e9, 199, 0)).toBe(true)
    expect(limit.take(1, 1, 500)).toBe(false)
  })
})
