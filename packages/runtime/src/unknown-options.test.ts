import { expect, it } from 'vitest'
import { backoffDelayMs, HashRing, retry, SlidingCounter, SnowflakeGenerator } from './index.ts'

const nowMs = () => 0
const random = () => 0.5
const sleep = () => Promise.resolve()

// A misspelt option must not be taken for one that was left out.
it.each<[string, (unknown: object) => unknown, string]>([
  ['HashRing', (unknown) => new HashRing({ ...unknown }), 'only servers, virtualNodes'],
  ['SnowflakeGenerator', (unknown) => new SnowflakeGenerator({ datacenter: 0, machine: 0, nowMs, ...unknown }), 'only'],
  ['SlidingCounter', (unknown) => new SlidingCounter({ windowMs: 1000, nowMs, ...unknown }), 'only windowMs, nowMs'],
  ['backoffDelayMs', (unknown) => backoffDelayMs(0, random, { ...unknown }), 'only baseMs, capMs'],
  ['retry', (unknown) => retry(() => 1, { random, sleep, ...unknown }), 'only baseMs, capMs, random'],
])('%s throws for an unknown option', async (_, create, expected) => {
  const failed = expect(async () => await create({ typo: 1 }))
  await failed.rejects.toMatchObject({
    code: 'SLUICE_RUNTIME_INVALID_OPTION',
    message: expect.stringContaining(expected),
  })
})
