import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { readHead } from './request-body.ts'

function headOf(...rawHeaders: string[]): ReturnType<typeof readHead> {
  return readHead({ rawHeaders } as IncomingMessage)
}

const NONE = { host: undefined, hasSeveralHosts: false, contentType: undefined, contentLength: 0, isEncoded: false }

describe('the head of a request', () => {
  it('has what is said, however it is spelt', () => {
    const head = { host: 'h', hasSeveralHosts: false, contentType: 'a/b', contentLength: 12, isEncoded: true }
    const names = ['Host', 'Content-Type', 'Content-Length', 'Content-Encoding']
    for (const spell of [
      (name: string) => name,
      (name: string) => name.toLowerCase(),
      (name: string) => name.toUpperCase(),
    ]) {
      const [host, type, length, encoding] = names.map(spell)
      expect(headOf('X-A', '1', host!, 'h', type!, 'a/b', length!, '12', encoding!, 'gzip')).toEqual(head)
    }
  })

  it('has nothing that is not said, by names of the same length either', () => {
    expect(headOf()).toEqual(NONE)
    expect(headOf('Hose', 'h', 'Content-Tape', 'a/b', 'Content-Longth', '12', 'Content-Encodung', 'gzip')).toEqual(NONE)
  })

  it('says when there are several hosts', () => {
    expect(headOf('Host', 'a', 'host', 'a')).toMatchObject({ host: 'a', hasSeveralHosts: true })
  })

  it('takes the first of several types, and any encoding but none', () => {
    expect(headOf('Content-Type', 'a/b', 'Content-Type', 'c/d').contentType).toBe('a/b')
    expect(headOf('Content-Encoding', 'Identity').isEncoded).toBe(false)
    expect(headOf('Content-Encoding', 'identity', 'Content-Encoding', 'br').isEncoded).toBe(true)
  })
})
