import { describe, expect, it } from 'vitest'
import { readHeaderName } from './response-header-names.ts'
import { ResponseHeaders } from './response-headers.ts'

function bytesOf(...texts: string[]): Buffer[] {
  return texts.map((text) => Buffer.from(text, 'latin1'))
}

describe('response headers', () => {
  it('keep their order, the spelling of each name, and every value of a name', () => {
    const raw = bytesOf('X-One', '1', 'x-one', '2', 'Content-Type', 'a/b', 'X-ONE', '3')
    const read = { 'x-one': ['1', '2', '3'], 'content-type': 'a/b' } as never
    const list = ['X-One', '1', 'x-one', '2', 'Content-Type', 'a/b', 'X-ONE', '3']
    expect(new ResponseHeaders(raw, read).list).toEqual(list)
    expect(new ResponseHeaders(raw).list).toEqual(list)
  })

  it('have the bytes of a value as characters', () => {
    const raw = bytesOf('X-Name', 'caf\xe9')
    expect(new ResponseHeaders(raw, { 'x-name': 'caf\xe9' }).list).toEqual(['X-Name', 'caf\xe9'])
    expect(new ResponseHeaders(raw).list).toEqual(['X-Name', 'caf\xe9'])
  })

  it('are not taken for properties that every object has', () => {
    const raw = bytesOf('constructor', 'one', '__proto__', 'two')
    expect(new ResponseHeaders(raw, {}).list).toEqual(['constructor', 'one', '__proto__', 'two'])
  })

  it('lose those of the connection, however they are spelled', () => {
    const raw = bytesOf('CONNECTION', 'X-Gone', 'Keep-alive', 'timeout=5', 'x-gone', '1', 'Upgrade', 'h2c', 'ETag', 'e')
    expect(new ResponseHeaders(raw).list).toEqual(['ETag', 'e'])
  })
})

describe('names of headers that were read before', () => {
  it('are distinguished, also at the same place', () => {
    // Length, first and last byte decide on the place.
    for (const text of ['x-abc-z', 'x-cba-z', 'X-abc-z', 'x-abc-z', 'Content-Length', 'content-length']) {
      const name = readHeaderName(Buffer.from(text))
      expect(name).toMatchObject({ text, lower: text.toLowerCase() })
    }
  })

  it('do not change with the bytes that they were read from', () => {
    const bytes = Buffer.from('X-Reused')
    expect(readHeaderName(bytes).text).toBe('X-Reused')
    bytes.write('X-Abused')
    expect(readHeaderName(bytes).text).toBe('X-Abused')
    expect(readHeaderName(Buffer.from('X-Reused')).text).toBe('X-Reused')
  })
})
