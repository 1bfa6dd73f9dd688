import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Reply } from './reply-parser.ts'
import { RedisReplyError, ReplyParser } from './reply-parser.ts'

function encode(reply: Reply): Buffer {
  if (reply === null) return Buffer.from('$-1\r\n')
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`)
  if (reply instanceof RedisReplyError) return Buffer.from(`-${reply.message}\r\n`)
  if (typeof reply === 'string') return Buffer.from(`$${Buffer.byteLength(reply)}\r\n${reply}\r\n`)
  return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(encode)])
}

/** The bytes in two pieces, cut at a share of their length. */
function halves(bytes: Buffer, share: number): Buffer[] {
  const at = Math.floor(bytes.length * share)
  return [bytes.subarray(0, at), bytes.subarray(at)]
}

const { reply: replies } = fc.letrec<{ reply: Reply }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.constant(null),
    fc.constantFrom('ERR no', 'MOVED 1 127.0.0.1:1').map((message) => new RedisReplyError(message)),
    fc.array(tie('reply'), { maxLength: 4 }),
  ),
}))

describe('ReplyParser', () => {
  it('finds the same replies however the bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(replies, { maxLength: 4 }), fc.double({ min: 0, max: 1, noNaN: true }), (sent, share) => {
        const parser = new ReplyParser()
        const found = halves(Buffer.concat(sent.map(encode)), share).flatMap((piece) => parser.push(piece))
        expect(found).toEqual(sent)
      }),
    )
  })

  it('finds them byte by byte', () => {
    const parser = new ReplyParser()
    const found = [...Buffer.from('+OK\r\n*2\r\n$1\r\na\r\n*-1\r\n:12\r\n')].flatMap((byte) =>
      parser.push(Buffer.of(byte)),
    )
    expect(found).toEqual(['OK', ['a', null], 12])
  })

  it('takes the first word of an error for its code', () => {
    const [error] = new ReplyParser().push(Buffer.from('-NOSCRIPT No matching script.\r\n'))
    expect(error).toMatchObject({ name: 'RedisReplyError', code: 'NOSCRIPT', message: 'NOSCRIPT No matching script.' })
  })

  it('keeps every byte with latin1', () => {
    const bytes = Buffer.from([0xff, 0x00, 0xc3])
    const [text] = new ReplyParser('latin1').push(Buffer.concat([Buffer.from('$3\r\n'), bytes, Buffer.from('\r\n')]))
    expect(Buffer.from(String(text), 'latin1')).toEqual(bytes)
  })

  it('says so when the other side speaks something else', () => {
    expect(() => new ReplyParser().push(Buffer.from('HTTP/1.1 400 Bad Request\r\n'))).toThrow('Is it one?')
  })
})
