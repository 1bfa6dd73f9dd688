import { describe, expect, it } from 'vitest'
import type { Scenario } from './scenario.ts'
import { DRAWN_COLUMNS, FIRST_SCENARIO, readScenario, scenarioQuery } from './scenario.ts'

describe('a scenario as a link', () => {
  it('is empty for the first one', () => {
    expect(scenarioQuery(FIRST_SCENARIO)).toBe('')
    expect(readScenario('')).toEqual({ scenario: FIRST_SCENARIO, problems: [] })
  })

  it('comes back as it was', () => {
    const scenario: Scenario = {
      algorithms: ['gcra', 'concurrency'],
      limit: 7,
      window: '1m30s',
      burst: 3,
      holdMs: 250,
      shape: 'drawn',
      rate: 2.5,
      size: 12,
      levels: Array.from({ length: DRAWN_COLUMNS }, (_, column) => column % 36),
    }
    expect(readScenario(scenarioQuery(scenario))).toEqual({ scenario, problems: [] })
  })

  it.each([
    'limit=0',
    'limit=1.5',
    'limit=2001',
    'limit=abc',
    'rate=-1',
    'rate=1e9',
    'holdMs=0',
    'window=10',
    'window=2h',
    'window=1ms',
    'window=%3Cscript%3E',
    'shape=spiral',
    'algorithms=fixed-window,magic',
    'algorithms=',
    'levels=123',
    `levels=${'!'.repeat(DRAWN_COLUMNS)}`,
  ])('%s is reported, and not taken', (query) => {
    const { scenario, problems } = readScenario(query)
    expect(scenario).toEqual(FIRST_SCENARIO)
    expect(problems).toEqual([expect.stringContaining(`"${query.split('=')[0]}" of the link cannot be used`)])
  })
})
