import { SnowflakeGenerator } from '@sluice/runtime'
import { describe, expect, it } from 'vitest'
import { DecodedCalls } from '../decoded-calls.test.support.ts'
import type { ReadAnswer } from './check-api.test.support.ts'
import { readAnswer } from './check-api.test.support.ts'
import { idHandlers } from './ids.ts'

async function ask(query: string, nextId: () => string | undefined = generator()): Promise<ReadAnswer> {
  return readAnswer('ids', await new DecodedCalls(idHandlers({ nextId })).call('ids', { query }))
}

/** Ids of a clock that moves a millisecond on at every hundredth look. */
function generator(): () => string {
  let looks = 0
  const ids = new SnowflakeGenerator({ datacenter: 1, machine: 2, nowMs: () => 1_900_000_000_000 + looks++ / 100 })
  return () => ids.nextString()
}

describe('unique ids', () => {
  it.each([
    ['', 1],
    ['count=1', 1],
    ['count=7', 7],
    ['count=1000', 1000],
  ])('come in the requested number, rising, in decimal digits (%j)', async (query, count) => {
    const { status, headers, body } = await ask(query)
    expect([status, headers]).toEqual([200, { 'Cache-Control': 'no-store' }])
    const ids = body['ids'] as readonly string[]
    expect(ids.length).toBe(count)
    for (const [index, id] of ids.entries()) {
      expect(id).toMatch(/^\d{18,19}$/)
      if (index > 0) expect(BigInt(id)).toBeGreaterThan(BigInt(ids[index - 1]!))
    }
  })

  it.each([
    ['count=0', '0'],
    ['count=1001', '1001'],
    ['count=-1', '-1'],
    ['count=1.5', '"1.5"'],
    ['count=1e2', '"1e2"'],
    ['count=', '""'],
    ['count=%2010', '" 10"'],
    ['count=0x10', '"0x10"'],
    [`count=${'9'.repeat(100)}`, `"${'9'.repeat(60)}"... (100 characters)`],
    ['count=1&count=2', 'it 2 times', 'it once'],
  ])('are rejected for another count (%j)', async (query, received, expected = 'a whole number from 1 to 1000') => {
    const { status, body } = await ask(query)
    expect(status).toBe(400)
    expect(body['errors']).toEqual([{ path: '?count', received, expected }])
  })

  it('are not made without a number of this node', async () => {
    expect(await ask('count=3', () => undefined)).toMatchObject({
      status: 503,
      headers: { 'Retry-After': '1' },
      body: { code: 'SLUICE_HTTP_NOT_READY', detail: expect.stringContaining('number') },
    })
  })

  it('are not made by a clock that was set back', async () => {
    const nowMs = [1_900_000_001_000, 1_900_000_000_000].values()
    const ids = new SnowflakeGenerator({ datacenter: 0, machine: 0, nowMs: () => nowMs.next().value ?? 0 })
    expect(await ask('count=2', () => ids.nextString())).toMatchObject({
      status: 503,
      body: { code: 'SLUICE_HTTP_NOT_READY', detail: expect.stringContaining('clock') },
    })
  })

  it('let any other mistake through', async () => {
    const mistake = (): never => {
      throw new TypeError('a mistake')
    }
    await expect(ask('', mistake)).rejects.toThrow('a mistake')
  })
})
