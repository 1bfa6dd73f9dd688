import { openConfigStore } from '@sluice/config-store'
import { systemRandom } from '@sluice/core'
import { Logger, LogOutput, systemSleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ReconnectingConfigStore } from '../config/reconnecting-config-store.ts'
import { testSettings } from '../service.fixture.ts'
import type { Settings } from '../settings/settings.ts'
import type { MachineNumberSource } from './machine-number-source.ts'
import { machineNumberSource } from './machine-number-source.ts'
import { MachineNumberTable } from './machine-numbers.ts'

const NOW_MS = 1_800_000_000_000

interface Node {
  readonly numbers: MachineNumberSource
  /** Of its threads; below 0 for none. */
  held(): readonly number[]
  /** What it logged. */
  readonly told: string[]
}

function nodeOf(settings: Partial<Settings>, database: ReconnectingConfigStore): Node {
  const complete = testSettings(settings)
  const machineNumbers = new MachineNumberTable(complete.threads)
  const told: string[] = []
  const stream = { write: (text: string) => told.push(text) > 0, on: () => undefined, off: () => undefined }
  const numbers = machineNumberSource({
    settings: complete,
    machineNumbers,
    database,
    secureRandom: systemRandom,
    nowMs: () => NOW_MS,
    sleep: systemSleep,
    log: new Logger(new LogOutput({ stream, nowMs: () => NOW_MS, level: 'warn' })),
  })
  onTestFinished(() => numbers.stop())
  return {
    numbers,
    told,
    held: () => Array.from({ length: complete.threads }, (_, thread) => machineNumbers.numberOf(thread)),
  }
}

describe('a process that shares nothing', () => {
  it.each([
    [{}, [0]],
    [{ threads: 3 }, [0, 1, 2]],
    [{ machine: 17 }, [17]],
    [{ machine: 1022, threads: 4 }, [1022, 1023, 0, 1]],
  ])('has with %o the numbers %o, without a store', async (settings, expected) => {
    const { numbers, held } = nodeOf(settings, new ReconnectingConfigStore(() => expect.fail('the database was asked')))
    await numbers.start()
    expect(held()).toEqual(expected)
  })
})

describe('nodes that share a database', () => {
  const shared = { databaseUrl: 'postgres://where/it/is' }

  /** Starts nodes one after another on one database. */
  async function started(...all: readonly Partial<Settings>[]): Promise<readonly Node[]> {
    const database = new ReconnectingConfigStore(() => openConfigStore('sqlite::memory:', { nowMs: () => NOW_MS }))
    onTestFinished(() => database.close())
    const nodes = all.map((settings) => nodeOf({ ...shared, ...settings }, database))
    for (const { numbers } of nodes) await numbers.start()
    return nodes
  }

  it('have numbers of their own, whether these are given or found', async () => {
    const given = await started({ machine: 17, threads: 2 }, { threads: 64 }, { threads: 64 })
    expect(given[0]!.held()).toEqual([17, 18])
    const numbers = given.flatMap(({ held }) => held())
    expect(new Set(numbers).size).toBe(130)
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0)
  })

  it('that are given one number: the first has it, the other has none and says so', async () => {
    const [first, other] = await started({ machine: 3 }, { machine: 2, threads: 2, dataDir: 'another' })
    expect([first?.held(), other?.held()]).toEqual([[3], [2, -1]])
    expect(other?.told.join('')).toContain('another node has number 3')
  })

  it('that are started again where they were have the number that they are given at once', async () => {
    const [killed, again] = await started({ machine: 3 }, { machine: 3 })
    expect([killed?.held(), again?.held()]).toEqual([[3], [3]])
  })
})
