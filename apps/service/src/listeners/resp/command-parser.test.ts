import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CommandParser, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_COMMAND_BYTES, ProtocolError } from './command-parser.ts'

/** All commands in these chunks, added one after the other as a connection does. */
function commandsIn(...chunks: readonly (string | Uint8Array)[]): string[][] {
  const parser = new CommandParser()
  const commands: string[][] = []
  for (const chunk of chunks) {
    parser.add(Buffer.from(chunk as Uint8Array))
    for (let count = parser.next(); count >= 0; count = parser.next()) {
      commands.push(Array.from({ length: count }, (_, index) => parser.binary(index)))
    }
    parser.keepRest()
  }
  return commands
}

function encoded(command: readonly Uint8Array[]): Buffer {
  const parts = command.flatMap((argument) => [Buffer.from(`$${argument.length}\r\n`), argument, Buffer.from('\r\n')])
  return Buffer.concat([Buffer.from(`*${command.length}\r\n`), ...parts])
}

describe('commands', () => {
  it('are arrays of bulk strings, or lines', () => {
    expect(commandsIn('*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n')).toEqual([['ECHO', 'hi']])
    expect(commandsIn('PING\r\n  ECHO\t hi  \nQUIT\r\n')).toEqual([['PING'], ['ECHO', 'hi'], ['QUIT']])
    expect(commandsIn('\r\n*0\r\n')).toEqual([[], []])
    expect(commandsIn(`ECHO "a \\"b\\" c" 'd e' ""\r\n`)).toEqual([['ECHO', 'a "b" c', 'd e', '']])
  })

  it.each([
    ['"\\x41\\xff\\xZZ"', 'A\xffxZZ'],
    ['"\\n\\r\\t\\b\\a\\"\\\\\\q"', '\n\r\t\b\x07"\\q'],
    ["'it\\'s \\n'", "it's \\n"],
    ['a"b c"', 'ab c'],
    ['a\\nb', 'a\\nb'],
  ])('have the quotes and escapes of Redis: %s', (word, argument) => {
    expect(commandsIn(`ECHO ${word}\r\n`)).toEqual([['ECHO', argument]])
  })

  it('are the same however their bytes are split', () => {
    const argument = fc.uint8Array({ maxLength: 40 })
    const commands = fc.array(fc.array(argument, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 })
    fc.assert(
      fc.property(commands, fc.array(fc.nat(400), { maxLength: 12 }), (given, cuts) => {
        const bytes = Buffer.concat(given.map(encoded))
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        const chunks = places.slice(1).map((place, index) => bytes.subarray(places[index], place))
        const expected = given.map((command) => command.map((part) => Buffer.from(part).toString('latin1')))
        expect(commandsIn(...chunks)).toEqual(expected)
      }),
    )
  })

  it('of any bytes are read, wait for more, or are a protocol error', () => {
    const line = fc.constantFrom('*1\r\n', '*3\r\n', '$4\r\n', '$-1\r\n', 'PING\r\n', '"', '\r\n', ':5\r\n', '*', '$')
    const bytes = fc.oneof(
      line.map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 20 }),
    )
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 30 }), (chunks) => {
        try {
          commandsIn(...chunks)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['a bulk string of 100 MB', '*1\r\n$100000000\r\n', 'invalid bulk length'],
    ['a length with a sign', '*1\r\n$-1\r\n', 'invalid bulk length'],
    ['a length of many digits', `*${'1'.repeat(30)}\r\n`, 'invalid multibulk length'],
    ['too many arguments', `*${MAX_ARGUMENTS + 1}\r\n`, 'invalid multibulk length'],
    ['nested arrays', '*1\r\n'.repeat(1_000_000), "expected '$', got '*'"],
    ['an argument without its line end', '*1\r\n$1\r\nabc', 'expected a line end'],
    ['a line without end', 'x'.repeat(MAX_ARGUMENT_BYTES + 1), 'too big inline request'],
    ['an open quote', 'ECHO "a\r\n', 'unbalanced quotes'],
    ['a quote that ends within a word', 'ECHO "a"b\r\n', 'unbalanced quotes'],
    ['an escape at the end', 'ECHO "a\\\r\n', 'unbalanced quotes'],
    ['a number that is none', '*x\r\n', 'invalid multibulk length'],
  ])('reject %s', (_, bytes, message) => {
    expect(() => commandsIn(bytes)).toThrow(message)
  })

  it('are rejected when they are too long as a whole', () => {
    const argument = `$${MAX_ARGUMENT_BYTES}\r\n${'x'.repeat(MAX_ARGUMENT_BYTES)}\r\n`
    const enough = Math.ceil(MAX_COMMAND_BYTES / MAX_ARGUMENT_BYTES) + 1
    expect(() => commandsIn(`*9\r\n${argument.repeat(enough)}`)).toThrow('too big command')
  })

  it('have whole numbers of at most 15 digits', () => {
    const parser = new CommandParser()
    parser.add(Buffer.from('0 42 -1 1.5 999999999999999 1000000000000000 x ""\r\n'))
    const count = parser.next()
    expect(Array.from({ length: count }, (_, index) => parser.whole(index))).toEqual([
      ...[0, 42, undefined, undefined, 999_999_999_999_999, undefined, undefined, undefined],
    ])
  })
})
