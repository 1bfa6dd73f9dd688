import { describe, expect, it } from 'vitest'
import { serverCodeOf } from './connection.ts'

describe('the code of an error', () => {
  it.each([
    'NOSCRIPT No matching script. Please use EVAL.',
    'OOM command not allowed',
    'MOVED 3999 127.0.0.1:6381',
    'ERR x',
    'BUSY',
  ])('is that of the server for %s', (message) => {
    expect(serverCodeOf(new Error(message))).toBe(message.split(' ')[0])
  })

  it.each([
    new Error('Connection is closed.'),
    new Error('Socket closed unexpectedly'),
    new Error('timed out'),
    // OpenSSL begins with the number of a thread, which may begin with a letter.
    new Error('C0FFEE4242420000:error:0A000126:SSL routines::unexpected eof while reading'),
    new Error('DEADBEEF:error'),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', errno: -104, syscall: 'read' }),
    Object.assign(new Error('EPIPE while writing'), { code: 'EPIPE' }),
    'NOSCRIPT as a string',
    undefined,
  ])('is none for %s', (error) => {
    expect(serverCodeOf(error)).toBeUndefined()
  })
})
