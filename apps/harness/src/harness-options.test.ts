import { describe, expect, it } from 'vitest'
import { helpText, parseOptions } from './harness-options.ts'
import { STORES } from './targets/store-targets.ts'
import { isHarnessError } from './tests/harness-error.ts'
import { TESTED_ALGORITHMS } from './tests/tested-algorithms.ts'

const CHOICES = { algorithms: TESTED_ALGORITHMS, stores: STORES }

function parse(...args: string[]): ReturnType<typeof parseOptions> {
  return parseOptions(args, CHOICES)
}

function messageOf(...args: string[]): string {
  try {
    parse(...args)
  } catch (error) {
    if (isHarnessError(error, 'SLUICE_HARNESS_INVALID_OPTION')) return error.message
    throw error
  }
  throw new Error(`${args.join(' ')} was accepted`)
}

describe('parseOptions', () => {
  it('runs everything on shared memory when nothing is said', () => {
    expect(parse()).toEqual({
      threads: 8,
      attempts: 5000,
      algorithms: TESTED_ALGORITHMS,
      maxRequests: [100, 500, 1000],
      store: 'shared',
      json: false,
      help: false,
    })
  })

  it('takes values after a space or an equals sign', () => {
    expect(parse('--threads', '3', '--attempts=77', '--store', 'memory')).toMatchObject({
      threads: 3,
      attempts: 77,
      store: 'memory',
    })
  })

  it('takes flags', () => {
    expect(parse('--json', '--help')).toMatchObject({ json: true, help: true })
  })

  it('takes lists, each entry once; limits in the order given, algorithms in that of the report', () => {
    const { algorithms, maxRequests } = parse('--max', '7,100, 7', '--algorithms', 'gcra,fixed-window,gcra')
    expect(maxRequests).toEqual([7, 100])
    expect(algorithms.map(({ name }) => name)).toEqual(['fixed-window', 'gcra'])
  })

  it('lets the last of several win', () => {
    expect(parse('--threads', '3', '--threads', '4').threads).toBe(4)
  })

  it.each([
    [['--thread', '3'], 'Received "--thread"', 'expected one of --threads, --attempts'],
    [['-t', '3'], 'Received "-t"', 'expected one of --threads'],
    [['json'], 'Received "json"', 'expected one of --threads'],
    [['--', 'json'], 'Received "json"', 'expected one of --threads'],
    [['--threads'], 'Received --threads without a value', 'expected --threads with a value'],
    [['--json=yes'], 'Received --json=yes', 'expected --json alone'],
    [['--threads', '0'], 'Received --threads "0"', 'expected a whole number from 1 to 64'],
    [['--threads', '65'], 'Received --threads "65"', 'expected a whole number from 1 to 64'],
    [['--threads', '-1'], 'Received --threads "-1"', 'expected a whole number from 1 to 64'],
    [['--threads', '1e1'], 'Received --threads "1e1"', 'expected a whole number from 1 to 64'],
    [['--attempts', '1000001'], 'Received --attempts "1000001"', 'expected a whole number from 1 to 1000000'],
    [['--max', '100,'], 'Received --max ""', 'expected a whole number from 1 to 5000'],
    [['--max', '5001'], 'Received --max "5001"', 'expected a whole number from 1 to 5000'],
    [['--algorithms', 'gcra,fixed'], 'Received --algorithms "fixed"', 'expected one of fixed-window, token-bucket'],
    [['--store', 'disk'], 'Received --store "disk"', 'expected one of shared, memory'],
    [['--store', 'toString'], 'Received --store "toString"', 'expected one of shared, memory, redis'],
    [['--redis-url', 'redis://h'], 'Received --redis-url with --store shared', 'expected it only with --store redis'],
  ])('rejects %j', (args, received, expected) => {
    const message = messageOf(...args)
    expect(message).toContain(received)
    expect(message).toContain(expected)
  })
})

describe('--redis-url', () => {
  it.each(['redis://localhost', 'redis://:p%40ss@10.0.0.1:7000/3', 'rediss://me:secret@[::1]:6380'])(
    'takes %s',
    (url) => {
      expect(parse('--store', 'redis', '--redis-url', url).redisUrl).toBe(url)
    },
  )

  it.each(['localhost:6379', 'http://secret@localhost', 'redis://', 'redis://:secret@localhost/x', ''])(
    'rejects %j without showing it',
    (url) => {
      const message = messageOf('--store', 'redis', `--redis-url=${url}`)
      expect(message).toContain('expected redis://[[user]:password@]host[:port][/database]')
      expect(message).not.toContain('secret')
    },
  )
})

describe('helpText', () => {
  it('names every option, algorithm and store, and says which time it is', () => {
    const text = helpText(CHOICES)
    const options = ['threads', 'attempts', 'algorithms', 'max', 'store', 'redis-url', 'json', 'help'].map(
      (name) => `--${name}`,
    )
    for (const word of [...options, ...TESTED_ALGORITHMS.map(({ name }) => name), ...Object.keys(STORES)]) {
      expect(text).toContain(word)
    }
    expect(text.replaceAll('\n', ' ')).toContain('it stands still while requests are made')
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120)
  })
})
