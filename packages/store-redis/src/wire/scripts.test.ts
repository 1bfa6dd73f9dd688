import { describe, expect, it } from 'vitest'
import { loadScript } from './scripts.ts'

function bodyOf(files: Readonly<Record<string, string>>): string {
  return loadScript('main', (path) => files[path]!).body
}

describe('a script', () => {
  it('has its includes in place, without comments and indentation', () => {
    const body = bodyOf({
      main: '-- Adds.\n-- @include two-lines\n\nlocal function f()\n  -- @include one\n  last()\nend\n',
      'includes/one': '-- A part.\none()\n',
      'includes/two-lines': 'two()\n  lines() -- why\n',
    })
    expect(body).toBe('two()\nlines() -- why\nlocal function f()\none()\nlast()\nend')
  })

  it('has an include once, at its first place', () => {
    const body = bodyOf({ main: '-- @include part\nmiddle()\n-- @include part\n', 'includes/part': 'part()\n' })
    expect(body).toBe('part()\nmiddle()')
  })

  it('is identified by the SHA-1 of its body', () => {
    expect(loadScript('main', () => 'return 1').digest).toBe('e0e1f9fabfc9d4800c877a703b823ac0578ff8db')
  })

  it('cannot be loaded when a file is missing', () => {
    expect(() => loadScript('nowhere')).toThrow('ENOENT')
  })
})
