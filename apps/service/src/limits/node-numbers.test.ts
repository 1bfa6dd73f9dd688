import { systemRandom } from '@sluice/core'
import { Logger, LogOutput } from '@sluice/runtime'
import { expect, it } from 'vitest'
import { testSettings } from '../service.fixture.ts'
import type { Settings } from '../settings.ts'
import { LateConfigStore } from './late-config-store.ts'
import { MachineCells } from './machine-cell.ts'
import { nodeNumbers } from './node-numbers.ts'

const NOW_MS = 1_800_000_000_000

/** The numbers of the threads of a process with these settings, which asks nobody for them. */
async function given(settings: Partial<Settings>): Promise<number[]> {
  const complete = testSettings(settings)
  const cells = new MachineCells(complete.threads)
  const numbers = nodeNumbers({
    settings: complete,
    cells,
    database: new LateConfigStore(() => expect.fail('the database was asked')),
    secureRandom: systemRandom,
    nowMs: () => NOW_MS,
    sleep: () => expect.fail('nothing is waited for'),
    log: new Logger(new LogOutput({ stream: process.stderr, nowMs: () => NOW_MS, level: 'off' })),
  })
  await numbers.start()
  await numbers.stop()
  return Array.from({ length: complete.threads }, (_, thread) => cells.numberOf(thread))
}

it('a process that shares nothing begins with 0', async () => {
  expect(await given({})).toEqual([0])
  expect(await given({ threads: 3 })).toEqual([0, 1, 2])
})

it('a number of the settings is taken, whatever is shared; threads take those after it', async () => {
  expect(await given({ machine: 17, databaseUrl: 'postgres://nowhere/x' })).toEqual([17])
  expect(await given({ machine: 1022, threads: 4 })).toEqual([1022, 1023, 0, 1])
})
