import { Writable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Logger, LogOutput, type LogOutputOptions } from './logger.ts'

/** A logger whose lines are collected, at a time that stands still until it is moved. */
function logAt(atMs: number, options: Partial<LogOutputOptions> = {}) {
  const clock = { atMs }
  let written = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += chunk
      done()
    },
  })
  const output = new LogOutput({ stream, nowMs: () => clock.atMs, ...options })
  const lines = (): string[] => written.split('\n').slice(0, -1)
  const records = (): Record<string, unknown>[] => lines().map((line) => JSON.parse(line))
  const messages = (): unknown[] => records().map(({ message }) => message)
  return { clock, output, log: new Logger(output), lines, records, messages }
}

describe('Logger', () => {
  it('writes a line of JSON', () => {
    const { log, lines } = logAt(Date.UTC(2030, 0, 2, 3, 4, 5, 678))
    log.info('listening', { port: 8080, host: undefined })
    log.error('failed')
    expect(lines()).toEqual([
      '{"time":"2030-01-02T03:04:05.678Z","level":"info","message":"listening","port":8080}',
      '{"time":"2030-01-02T03:04:05.678Z","level":"error","message":"failed"}',
    ])
  })

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['off', []],
    [undefined, ['info', 'warn', 'error']],
  ] as const)('at level %s writes %j', (level, expected) => {
    const { log, records } = logAt(0, { level })
    const levels = ['debug', 'info', 'warn', 'error'] as const
    for (const each of levels) log[each]('message')
    expect(records().map((record) => record['level'])).toEqual(expected)
    expect(levels.filter((each) => log.isEnabled(each))).toEqual(expected)
  })

  it('has the fields of its parents in every line; the nearest count', () => {
    const { output, records } = logAt(0)
    const log = new Logger(output, { app: 'a', part: 'root' }).child({ part: 'http' }).child({ request: 1 })
    log.info('one', { request: 2 })
    log.info('two')
    expect(records()).toMatchObject([
      { app: 'a', part: 'http', request: 2 },
      { app: 'a', part: 'http', request: 1 },
    ])
  })

  it('keeps time, level and message for itself', () => {
    const { log, records } = logAt(0)
    log.info('real', { time: 1, level: 'fake', message: 'fake' })
    expect(records()).toEqual([
      {
        time: '1970-01-01T00:00:00.000Z',
        level: 'info',
        message: 'real',
        'field.time': 1,
        'field.level': 'fake',
        'field.message': 'fake',
      },
    ])
  })

  it('writes no secrets: not by name, not in a string, not in what a parent bound', () => {
    const { output, lines } = logAt(0, { redact: ['pin'] })
    const log = new Logger(output, { apiKey: 'hunter2' })
    log.info('connecting to redis://me:hunter2@host', { pinCode: 'hunter2', headers: { Cookie: 'hunter2' } })
    expect(lines().join()).not.toContain('hunter2')
    expect(lines()).toHaveLength(1)
  })

  it('writes one line for one call, whatever is in it (property)', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.dictionary(fc.string(), fc.string({ unit: 'binary' })),
        (message, fields) => {
          const { log, lines, records } = logAt(0)
          log.info(`m ${message}\n`, fields)
          expect(lines()).toHaveLength(1)
          expect(records()[0]?.['level']).toBe('info')
        },
      ),
    )
  })

  it('does not look at fields of lines that are not written', () => {
    const { log, lines } = logAt(0)
    const fields = {
      get costly(): never {
        throw new Error('was read')
      },
    }
    log.debug('message', fields)
    expect(lines()).toEqual([])
    log.info('message', fields)
    expect(lines()).toHaveLength(1)
  })
})

describe('a flood of one message', () => {
  it('is sampled, and the first line of a later second reports what is missing', () => {
    const { clock, log, records, output } = logAt(500, { mostPerSecond: 2 })
    for (let n = 0; n < 10; n++) log.warn('store failed', { n })
    log.info('other')
    clock.atMs = 1000
    log.info('next')
    log.warn('store failed', { n: 10 })
    const shown = records().map(({ level, message, n, suppressedMessage }) => [level, message, n ?? suppressedMessage])
    expect(shown).toEqual([
      ['warn', 'store failed', 0],
      ['warn', 'store failed', 1],
      ['info', 'other', undefined],
      ['warn', '8 more suppressed', 'store failed'],
      ['info', 'next', undefined],
      ['warn', 'store failed', 10],
    ])
    expect(output.counts()).toEqual({ written: 6, suppressed: 8, dropped: 0 })
  })

  it('is reported on request in a later second, and at the close', async () => {
    const { clock, log, messages, output } = logAt(0, { mostPerSecond: 1 })
    for (let n = 0; n < 3; n++) log.info('a')
    output.reportSuppressed()
    expect(messages()).toEqual(['a'])
    clock.atMs = 1000
    output.reportSuppressed()
    expect(messages()).toEqual(['a', '2 more suppressed'])
    for (let n = 0; n < 3; n++) log.info('b')
    await output.close()
    expect(messages()).toEqual(['a', '2 more suppressed', 'b', '2 more suppressed'])
  })

  it('is 50 lines a second when nothing else is said', () => {
    const { log, lines } = logAt(0)
    for (let n = 0; n < 60; n++) log.info('a')
    expect(lines()).toHaveLength(50)
  })
})

describe('LogOutput', () => {
  it('reports dropped lines in a line of the log', async () => {
    let go: (() => void) | undefined
    const received: string[] = []
    const stream = new Writable({
      highWaterMark: 1,
      decodeStrings: false,
      write(chunk, _encoding, done) {
        received.push(chunk)
        go = done
      },
    })
    const { log, output } = logAt(0, { stream, mostWaiting: 0 })
    for (let n = 0; n < 3; n++) log.info('a')
    expect(output.counts()).toEqual({ written: 1, suppressed: 0, dropped: 2 })
    const closed = output.close()
    go?.()
    await new Promise(process.nextTick)
    go?.()
    await closed
    expect(JSON.parse(received[1]!)).toEqual({
      time: '1970-01-01T00:00:00.000Z',
      level: 'warn',
      message: 'log lines dropped',
      dropped: 2,
    })
  })

  it('writes a time that no date can hold as a number', () => {
    const { log, records } = logAt(8.64e15)
    log.info('last')
    expect(records()[0]?.['time']).toBe('+275760-09-13T00:00:00.000Z')
    const beyond = logAt(8.64e15 + 2)
    beyond.log.info('later')
    expect(beyond.records()[0]?.['time']).toBe('8640000000000002')
  })

  it.each([{ level: 'loud' }, { mostPerSecond: 0 }, { mostPerSecond: 1.5 }, { mostWaiting: -1 }, { redact: [''] }])(
    'rejects %o',
    (options) => {
      expect(() => logAt(0, options as Partial<LogOutputOptions>)).toThrow(
        expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
      )
    },
  )
})
