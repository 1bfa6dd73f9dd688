import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { respCommand } from './resp-command.ts'

describe('a command', () => {
  it('is an array of strings, each with its length in bytes', () => {
    expect(String(respCommand(['GET', 'user-1']))).toBe('*2\r\n$3\r\nGET\r\n$6\r\nuser-1\r\n')
    expect(String(respCommand(['SET', 'k', Buffer.from('v\r\nw')]))).toBe(
      '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\nv\r\nw\r\n',
    )
    expect(String(respCommand(['AUTH', 'Zoë', '']))).toBe('*3\r\n$4\r\nAUTH\r\n$4\r\nZoë\r\n$0\r\n\r\n')
    expect(String(respCommand([Buffer.from('a'), 'é']))).toBe('*2\r\n$1\r\na\r\n$2\r\né\r\n')
  })

  it('has exactly the bytes of what it is made of', () => {
    const argument = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.uint8Array().map(Buffer.from))
    fc.assert(
      fc.property(fc.array(argument, { minLength: 1 }), (command) => {
        const expected = command.flatMap((part) => {
          const bytes = Buffer.from(part)
          return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
        })
        expect(respCommand(command)).toEqual(Buffer.concat([Buffer.from(`*${command.length}\r\n`), ...expected]))
      }),
    )
  })
})
