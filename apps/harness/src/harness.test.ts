import type { Clock, Store } from '@sluice/core'
import { memoryStore, systemClock } from '@sluice/core'
import type { Batch } from '@sluice/core/store'
import { describe, expect, it } from 'vitest'
import { runHarness } from './harness.ts'
import type { CreateLocalStore } from './targets/memory-target.ts'
import { memoryTarget } from './targets/memory-target.ts'
import type { StoreTable } from './targets/store-targets.ts'
import { STORES } from './targets/store-targets.ts'
import type { TestResult } from './tests/admission-tests.ts'
import { TESTED_ALGORITHMS } from './tests/tested-algorithms.ts'

interface Ran {
  readonly exitCode: number
  readonly output: string
  readonly errors: readonly string[]
}

async function run(args: readonly string[], stores: StoreTable = STORES): Promise<Ran> {
  const output: string[] = []
  const errors: string[] = []
  const exitCode = await runHarness(args, {
    algorithms: TESTED_ALGORITHMS,
    stores,
    stopwatch: systemClock,
    print: (text) => void output.push(`${text}\n`),
    printError: (text) => void errors.push(text),
  })
  return { exitCode, output: output.join(''), errors }
}

/** A store of the table by which the harness must not be fooled. */
function broken(createStore: CreateLocalStore): StoreTable {
  return { broken: { summary: 'wrong on purpose', open: (setting) => memoryTarget(setting, createStore) } }
}

/** A memory store with another way to decide. */
function deciding(decide: (batch: Batch, store: Store<'sync'>) => void): CreateLocalStore {
  return (clock: Clock): Store<'sync'> => {
    const store = memoryStore({ clock })
    return {
      mode: 'sync',
      decide: (batch) => decide(batch, store),
      settle: (receipt, actuals) => store.settle(receipt, actuals),
      block: (rule, key, term) => store.block(rule, key, term),
      reset: (limits, key) => store.reset(limits, key),
      close: () => store.close(),
    }
  }
}

/** A store whose `count`-th approval, or denial, is turned into its opposite. */
function turning(what: 'approval' | 'denial', count: number): CreateLocalStore {
  let seen = 0
  return deciding((batch, store) => {
    store.decide(batch)
    if (!batch.charge || batch.allowed !== (what === 'approval')) return
    seen++
    if (seen === count) batch.allowed = !batch.allowed
  })
}

const ONE_RUN = ['--algorithms', 'gcra', '--max', '100']

describe('a run', () => {
  it('is exact on the memory store for every algorithm and any limit, and says what it does not show', async () => {
    const { exitCode, output, errors } = await run(['--store', 'memory', '--json', '--max', '2,7,300,2500'])
    const results: TestResult[] = JSON.parse(output)
    expect(results).toHaveLength(4 * TESTED_ALGORITHMS.length)
    for (const { maxRequests, race, accuracy, distributed } of results) {
      expect(race).toMatchObject({ attempts: 5000, threads: 1, approved: maxRequests })
      expect(accuracy.approved).toBe(Math.min(2000, maxRequests))
      expect(accuracy.approvedAfterReset).toBe(Math.min(2000, maxRequests))
      expect(distributed.approvedPerNode).toEqual(Array.from({ length: 20 }, () => Math.min(200, maxRequests)))
    }
    expect(errors).toEqual([expect.stringContaining('belongs to one thread')])
    expect(exitCode).toBe(0)
  })

  it('expects all attempts to be approved when there are fewer than the limit', async () => {
    const { exitCode, output } = await run(['--store', 'memory', '--attempts', '60', '--json', ...ONE_RUN])
    expect(JSON.parse(output)[0].race.approved).toBe(60)
    expect(exitCode).toBe(0)
  })

  it('prints the sections of the algorithms with an empty line between them', async () => {
    const { output } = await run(['--store', 'memory', '--algorithms', 'fixed-window,gcra', '--max', '5,6'])
    const block = (max: number): string => `
MaxRequests = ${max}
RaceTest: Approved <= ${max} | Time=_ms
AccuracyTest: Approved <= ${max} | Requests=2000 | Time=_ms
DistributedTest: Nodes=20, Req/Node=200 | Time=_ms
`
    const section = (title: string): string => `Algorithm: ${title}\n-----\n${block(5)}${block(6)}`
    expect(output.replaceAll(/=\d+ms/g, '=_ms')).toBe(`${section('Fixed Window')}\n${section('GCRA')}
4 of 4 exact
`)
  })
})

describe('a store that miscounts', () => {
  it('by one approval too many is found', async () => {
    const { exitCode, errors, output } = await run(ONE_RUN, broken(turning('denial', 1)))
    expect(errors).toEqual([
      'Wrong count: GCRA, MaxRequests = 100: RaceTest approved 101 of 5000, expected exactly 100.',
    ])
    expect(output).toContain('Algorithm: GCRA')
    expect(exitCode).toBe(1)
  })

  it('by one approval too few is found', async () => {
    // The 150th approval is in the accuracy test.
    const { exitCode, errors } = await run(ONE_RUN, broken(turning('approval', 150)))
    expect(errors).toEqual([
      'Wrong count: GCRA, MaxRequests = 100: AccuracyTest approved 99 of 2000, expected exactly 100.',
    ])
    expect(exitCode).toBe(1)
  })

  it('by a reset that does not come is found, with --json too', async () => {
    const frozen: CreateLocalStore = (clock) => {
      const now = clock.nowMicros()
      return memoryStore({ clock: { nowMicros: () => now } })
    }
    const { exitCode, errors, output } = await run(['--json', ...ONE_RUN], broken(frozen))
    expect(errors).toEqual([expect.stringContaining('AccuracyTest after the reset approved 0 of 2000')])
    expect(JSON.parse(output)[0].accuracy).toMatchObject({ approved: 100, approvedAfterReset: 0 })
    expect(exitCode).toBe(1)
  })

  it('by keys that share a counter is found', async () => {
    const mixing = deciding((batch, store) => {
      const item = batch.items[0]!
      if (item.key === 'node-7') item.key = 'node-6'
      store.decide(batch)
    })
    const { exitCode, errors } = await run(ONE_RUN, broken(mixing))
    expect(errors.map((line) => /node \d+ approved \d+/.exec(line)?.[0])).toEqual([
      'node 6 approved 50',
      'node 7 approved 50',
    ])
    expect(exitCode).toBe(1)
  })
})

describe('a command line', () => {
  it('that asks for help gets it', async () => {
    const { exitCode, output, errors } = await run(['--help'])
    expect(output).toContain('Usage: sluice harness [options], or npm run harness -- [options]')
    expect(errors).toEqual([])
    expect(exitCode).toBe(0)
  })

  it('that is invalid is reported, and nothing runs', async () => {
    expect(await run(['--store', 'disk'])).toEqual({
      exitCode: 2,
      output: '',
      errors: [
        'SLUICE_HARNESS_INVALID_OPTION: an option cannot be used. Received --store "disk"; expected one of shared, ' +
          'memory, redis. "--help" tells more.',
      ],
    })
  })
})
