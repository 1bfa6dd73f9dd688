import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RespReply } from './resp-protocol.ts'
import { encodeCommand, RespReader } from './resp-protocol.ts'

/** Everything that can be read after each of the chunks. */
function read(...chunks: readonly (string | Buffer)[]): RespReply[] {
  const reader = new RespReader()
  const replies: RespReply[] = []
  for (const chunk of chunks) {
    reader.add(Buffer.from(chunk))
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) replies.push(reply)
  }
  return replies
}

/** A reply as a server writes it. */
function written(reply: RespReply): Buffer {
  if (reply === null) return Buffer.from('$-1\r\n')
  if (typeof reply === 'number') return Buffer.from(`:${reply}\r\n`)
  if (reply instanceof Error) return Buffer.from(`-${reply.message}\r\n`)
  if (Buffer.isBuffer(reply)) return Buffer.concat([Buffer.from(`$${reply.length}\r\n`), reply, Buffer.from('\r\n')])
  return Buffer.concat([Buffer.from(`*${reply.length}\r\n`), ...reply.map(written)])
}

const { reply: anyReply } = fc.letrec<{ reply: RespReply; array: RespReply[] }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.maxSafeInteger(),
    fc.constant(null),
    fc.stringMatching(/^[A-Z]{3,8} [ -~]{0,20}$/).map((text) => new Error(text)),
    tie('array'),
  ),
  array: fc.array(tie('reply'), { maxLength: 4 }),
}))

describe('replies', () => {
  it('of every kind', () => {
    const replies = read(
      '+OK\r\n:12\r\n:-7\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n',
    )
    expect(replies).toEqual([
      Buffer.from('OK'),
      12,
      -7,
      Buffer.from('a\r\n'),
      Buffer.alloc(0),
      null,
      null,
      [],
      [1, [Buffer.from('x')]],
    ])
    expect(read('-NOSCRIPT No matching script.\r\n')).toEqual([new Error('NOSCRIPT No matching script.')])
  })

  it('are the same however they are cut on their way', () => {
    fc.assert(
      fc.property(
        fc.array(anyReply, { minLength: 1, maxLength: 5 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        (replies, sizes) => {
          const bytes = Buffer.concat(replies.map(written))
          const chunks: Buffer[] = []
          for (let at = 0; at < bytes.length; ) {
            const size = sizes.next().value as number
            chunks.push(bytes.subarray(at, at + size))
            at += size
          }
          expect(read(...chunks)).toEqual(replies)
          expect(read(bytes)).toEqual(replies)
        },
      ),
      { numRuns: 300 },
    )
  })

  it('are there as soon as their last byte is, and not before', () => {
    const reader = new RespReader()
    for (const part of ['*2\r\n$3\r\nab', 'c\r', '\n:1', '2\r']) {
      reader.add(Buffer.from(part))
      expect(reader.next()).toBeUndefined()
    }
    reader.add(Buffer.from('\n'))
    expect(reader.next()).toEqual([Buffer.from('abc'), 12])
    expect(reader.next()).toBeUndefined()
  })
})

describe('what is not of the protocol', () => {
  it.each([
    ['HTTP/1.1 400 Bad Request\r\n', 'begins with "H"'],
    ['\u0015\u0003\u0003', 'begins with'],
    ['$1x\r\n', 'in place of a number'],
    [':\r\n', 'in place of a number'],
    ['$1\r\nab\r\n', 'longer than it says'],
    ['$99999999\r\n', 'a reply of more than'],
  ])('%j is reported as malformed', (text, told) => {
    expect(() => read(text)).toThrow(told)
    expect(() => read(text)).toThrow('does not speak RESP')
  })

  it('is a reply without an end', () => {
    const reader = new RespReader()
    reader.add(Buffer.from('+'))
    const more = Buffer.alloc(1024 * 1024, 'x')
    expect(() => {
      for (let count = 0; count < 20; count++) {
        reader.add(more)
        reader.next()
      }
    }).toThrow('a reply of more than')
  })
})

describe('a command', () => {
  it('is an array of strings, each with its length in bytes', () => {
    expect(String(encodeCommand(['GET', 'user-1']))).toBe('*2\r\n$3\r\nGET\r\n$6\r\nuser-1\r\n')
    expect(String(encodeCommand(['SET', 'k', Buffer.from('v\r\nw')]))).toBe(
      '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nv\r\nw\r\n',
    )
    expect(String(encodeCommand(['AUTH', 'Zoë', '']))).toBe('*3\r\n$4\r\nAUTH\r\n$4\r\nZoë\r\n$0\r\n\r\n')
    expect(String(encodeCommand([Buffer.from('a'), 'é']))).toBe('*2\r\n$1\r\na\r\n$2\r\né\r\n')
  })

  it('has exactly the bytes of what it is made of', () => {
    const argument = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.uint8Array().map(Buffer.from))
    fc.assert(
      fc.property(fc.array(argument, { minLength: 1 }), (command) => {
        const expected = command.flatMap((part) => {
          const bytes = Buffer.from(part)
          return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
        })
        expect(encodeCommand(command)).toEqual(Buffer.concat([Buffer.from(`*${command.length}\r\n`), ...expected]))
      }),
    )
  })
})
