import { SCHEMA_VERSION } from '@sluice/config-store/schema-version'
import { describe, expect, it } from 'vitest'
import { clockFinding } from './clock-check.ts'
import { schemaFinding } from './database-check.ts'

describe('clockFinding', () => {
  it.each([
    ['the same', 1000, 'ok', '0 ms'],
    ['anywhere between the readings', 1040, 'ok', '0 ms'],
    ['as late as may be', 1290, 'ok', '250 ms ahead'],
    ['later', 1291, 'warning', '251 ms ahead'],
    ['as late as is no harm', 2040, 'warning', '1000 ms ahead'],
    ['harmful', 2041, 'failed', '1001 ms ahead'],
    ['as early as may be', 750, 'ok', '250 ms behind'],
    ['earlier', 749, 'warning', '251 ms behind'],
    ['harmful the other way', -1, 'failed', '1001 ms behind'],
  ])('%s', (_, thereMs, status, found) => {
    expect(clockFinding('x', { beforeMs: 1000, thereMs, afterMs: 1040 })).toMatchObject({
      status,
      found: expect.stringContaining(found),
    })
  })
})

describe('schemaFinding', () => {
  it('tells tables that are missing, old, current and too new apart', () => {
    const versions = [0, 1, SCHEMA_VERSION, SCHEMA_VERSION + 1]
    const statuses = versions.map((version) => schemaFinding('x', version).status)
    expect(statuses).toEqual(['warning', 'warning', 'ok', 'failed'])
  })
})
