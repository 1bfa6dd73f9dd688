import { describe, expect, it } from 'vitest'
import { plain, streamTerminal } from './terminal.ts'

describe('plain', () => {
  it('leaves nothing that a terminal takes for a command', () => {
    expect(plain('\u001B[2Jred\u009B31m\r\u0007\tend')).toBe('\ufffd[2Jred\ufffd31m\ufffd\ufffd\ufffdend')
  })

  it('leaves texts of any language and line ends as they are', () => {
    expect(plain('Grüße\nこんにちは 👋')).toBe('Grüße\nこんにちは 👋')
  })
})

describe('streamTerminal', () => {
  const size = (columns: number | undefined, rows: number | undefined): unknown => {
    const terminal = streamTerminal({ write: () => true, columns, rows }, { write: () => true })
    return [terminal.columns, terminal.rows]
  }

  it('is as large as the stream says, and large enough where that is not known', () => {
    expect(size(60, 10)).toEqual([60, 10])
    expect(size(0, 0)).toEqual([100, 30])
    expect(size(undefined, undefined)).toEqual([100, 30])
  })

  it('prints without commands and draws with them', () => {
    const written: string[] = []
    const terminal = streamTerminal({ write: (text) => written.push(text) }, { write: (text) => written.push(text) })
    terminal.print('a\u001B')
    terminal.printError('b\u001B')
    terminal.draw('c\u001B')
    terminal.drawError('d\u001B')
    expect(written).toEqual(['a\ufffd\n', 'b\ufffd\n', 'c\u001B', 'd\u001B'])
    expect([terminal.isTty, terminal.isErrorTty]).toEqual([false, false])
  })

  it.each([
    ['a terminal', true, {}, true],
    ['a file', false, {}, false],
    ['a terminal that cannot', true, { TERM: 'dumb' }, false],
    ['NO_COLOR', true, { NO_COLOR: '1' }, false],
    ['an empty NO_COLOR', true, { NO_COLOR: '' }, true],
    ['FORCE_COLOR', false, { FORCE_COLOR: '1' }, true],
    ['FORCE_COLOR=0', true, { FORCE_COLOR: '0' }, false],
    ['FORCE_COLOR over NO_COLOR', false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
  ])('decides about colour: %s', (_, isTTY, environment, isColoured) => {
    const written: string[] = []
    const write = (text: string): unknown => written.push(text)
    const terminal = streamTerminal({ write, isTTY }, { write }, environment)
    // Colours are ours alone: those of others are gone before.
    terminal.print('a\u001B[31mb', (text, { green }) => green(text))
    expect(written.join('')).toBe(isColoured ? '\u001B[32ma\ufffd[31mb\u001B[39m\n' : 'a\ufffd[31mb\n')
  })
})
