import { describe, expect, it } from 'vitest'
import { allowedHosts } from './router.ts'

function allows(host: string, given: string, ...allowed: string[]): boolean {
  return allowedHosts({ host, allowedHosts: allowed })?.(given) ?? true
}

describe('a service on a loopback address', () => {
  it.each([
    ['127.0.0.1', 'localhost'],
    ['127.0.0.1', 'LOCALHOST:8080'],
    ['127.0.0.1', '127.0.0.1:8080'],
    ['127.0.0.1', '127.0.0.1:'],
    ['::1', '[::1]:8080'],
    ['::1', 'localhost:9'],
    ['localhost', '127.0.0.1'],
    ['localhost', '[::1]'],
  ])('on %s answers to %s', (host, given) => {
    expect(allows(host, given)).toBe(true)
  })

  it.each([
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    'localhost.',
    '127.0.0.2',
    '[::1]',
    '::1',
    '0.0.0.0',
    '',
    ':8080',
    'localhost:8080:8080',
    'localhost:x',
    'a@localhost',
    'localhost/x',
    ' localhost',
  ])('does not answer to %j', (given) => {
    expect(allows('127.0.0.1', given)).toBe(false)
  })

  it('answers to the allowed hosts as well', () => {
    expect(allows('127.0.0.1', 'sluice.internal:80', 'Sluice.internal')).toBe(true)
    expect(allows('127.0.0.1', 'localhost', 'sluice.internal')).toBe(true)
    expect(allows('127.0.0.1', 'evil.example', 'sluice.internal')).toBe(false)
  })
})

describe('a service on another address', () => {
  it('answers to all hosts unless some are allowed, and then to these only', () => {
    for (const given of ['evil.example', '192.0.2.7', '']) expect(allows('0.0.0.0', given)).toBe(true)
    const allowed = ['sluice.internal', 'fd00::7', '192.0.2.7']
    for (const given of ['sluice.internal:8080', '[fd00::7]:8080', '[FD00::7]', '192.0.2.7']) {
      expect(allows('0.0.0.0', given, ...allowed)).toBe(true)
    }
    for (const given of ['localhost', '0.0.0.0', 'evil.example', 'fd00::7']) {
      expect(allows('0.0.0.0', given, ...allowed)).toBe(false)
    }
  })

  it('remembers only hosts that are allowed', () => {
    const allowsHost = allowedHosts({ host: '127.0.0.1', allowedHosts: [] })!
    expect(['localhost', 'evil', 'evil', 'localhost', 'localhost'].map(allowsHost)).toEqual([
      true,
      false,
      false,
      true,
      true,
    ])
  })
})
