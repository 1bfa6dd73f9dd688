import { describe, expect, it } from 'vitest'
import { Redaction } from './log-fields.ts'

describe('isSecret', () => {
  it.each([
    ['authorization', true],
    ['Proxy-Authorization', true],
    ['apiKey', true],
    ['x-api-key', true],
    ['API_KEY', true],
    ['token', true],
    ['accessToken', true],
    ['tokenSource', true],
    ['idTokens', true],
    ['password', true],
    ['userPasswordHash', true],
    ['cookie', true],
    ['set-cookie', true],
    ['clientSecret', true],
    ['aws_secret_access_key', true],
    ['credentials', true],
    ['private.key', true],
    ['passphrase', true],
    ['user', false],
    ['key', false],
    ['author', false],
    ['path', false],
    ['', false],
  ])('%s: %s', (name, expected) => {
    expect(new Redaction().isSecret(name, 'value')).toBe(expected)
  })

  it.each([
    ['tokens', 5, false],
    ['tokensPerSecond', 5, false],
    ['maxTokens', 5, false],
    ['tokens', 'abc', true],
    ['tokens', ['abc'], true],
    ['token', 12_345, true],
    ['tokenSecond', 5, true],
    ['password', 12_345, true],
    ['tokensSecret', 12_345, true],
  ])('%s with %s: %s', (name, value, expected) => {
    expect(new Redaction().isSecret(name, value)).toBe(expected)
  })

  it('knows the names that were added, however they are written', () => {
    const redaction = new Redaction(['Session-Id'])
    expect(['sessionId', 'SESSION_ID', 'oldSessionIds', 'session'].map((name) => redaction.isSecret(name, ''))).toEqual(
      [true, true, true, false],
    )
    expect(redaction.isSecret('password', '')).toBe(true)
  })

  it('rejects an empty name, which would be part of every name', () => {
    const code = 'SLUICE_RUNTIME_INVALID_OPTION'
    expect(() => new Redaction([''])).toThrow(expect.objectContaining({ code }))
    expect(() => new Redaction(['--'])).toThrow(expect.objectContaining({ code }))
  })
})

describe('text', () => {
  it.each([
    ['redis://user:pass@host:6379/0', 'redis://[redacted]@host:6379/0'],
    ['two: a://:p@x b://q@y.', 'two: a://[redacted]@x b://[redacted]@y.'],
    ['postgres://u:p@ss@host/db', 'postgres://[redacted]@host/db'],
    ['https://host/path?mail=a@b', 'https://host/path?mail=a@b'],
    ['https://host/@user', 'https://host/@user'],
    ['sent Authorization: Bearer abc.def-123', 'sent Authorization: Bearer [redacted]'],
    ['basic dXNlcjpwYXNzd29yZA== given', 'basic [redacted] given'],
    ['Basic authentication is off', 'Basic authentication is off'],
    ['the bearer of news', 'the bearer of news'],
    ['nothing secret', 'nothing secret'],
  ])('%s', (text, expected) => {
    expect(new Redaction().text(text)).toBe(expected)
  })
})
