import { describe, expect, it } from 'vitest'
import { plain } from './terminal.ts'

describe('plain', () => {
  it('leaves nothing that a terminal takes for a command', () => {
    expect(plain('\u001B[2Jred\u009B31m\r\u0007\tend')).toBe('\ufffd[2Jred\ufffd31m\ufffd\ufffd\ufffdend')
  })

  it('leaves texts of any language and line ends as they are', () => {
    expect(plain('Grüße\nこんにちは 👋')).toBe('Grüße\nこんにちは 👋')
  })
})
