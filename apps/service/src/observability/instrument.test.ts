import type { Store } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import type { StoreEvent } from '@sluice/core/store'
import { fallbackStore, storeUnavailable } from '@sluice/core/store'
import { MetricRegistry } from '@sluice/runtime'
import { deferredStore, FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { Instrument, ObservedEngine } from './instrument.ts'
import { captureLog, createScene, numbersOf, parseMetricsPage, SECRET } from './observability.test.support.ts'

const RULES: RuleSet = {
  rules: [
    { name: 'by-user', resource: '/data', dimension: 'user', limit: 5, window: '1m' },
    { name: 'by-ip', resource: '*', dimension: 'ip', limit: 100, window: '1m' },
  ],
  exemptions: [{ name: 'health', match: { resource: '/health' } }],
}

describe('Instrument', () => {
  it('counts a known sequence exactly', () => {
    const { engine, metrics } = createScene({ ruleSet: { ...RULES, regions: { EU: 1, US: 1 } } })
    for (let call = 0; call < 7; call++) engine.check({ resource: '/data', user: 'ann', ip: '192.0.2.1', region: 'EU' })
    for (let call = 0; call < 3; call++) engine.check({ resource: '/data', user: 'bob', region: 'US' })
    engine.check({ resource: '/elsewhere', ip: '192.0.2.1' })
    engine.check({ resource: '/elsewhere', user: 'ann' })
    engine.check({ resource: '/health', user: 'ann' })
    engine.check({ resource: '/data', user: 'bob', cost: 6 })
    const snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'ratelimit_checks_total')).toEqual({
      'user /data allowed': 8,
      'user /data denied': 3,
      'ip * allowed': 1,
      'ip * denied': 0,
      'none /health allowed': 1,
      'none /health denied': 0,
      'none other allowed': 1,
      'none other denied': 0,
    })
    expect(numbersOf(snapshot, 'ratelimit_denials_total')).toEqual({
      'user /data': 3,
      'ip *': 0,
      'none /health': 0,
      'none other': 0,
    })
    expect(numbersOf(snapshot, 'ratelimit_decisions_total')).toEqual({
      allowed: 9,
      exempt: 1,
      unlimited: 1,
      limit: 2,
      never: 1,
      blocked: 0,
      denied: 0,
      unavailable: 0,
    })
    // Of 5 units, 1 left and 0 left are near the limit.
    expect(numbersOf(snapshot, 'ratelimit_near_limit_total')).toEqual({
      'user /data': 2,
      'ip *': 0,
      'none /health': 0,
      'none other': 0,
    })
    expect(numbersOf(snapshot, 'ratelimit_region_checks_total')).toEqual({
      'none allowed': 3,
      'none denied': 1,
      'EU allowed': 5,
      'EU denied': 2,
      'US allowed': 3,
      'US denied': 0,
      'other allowed': 0,
      'other denied': 0,
    })
    expect(numbersOf(snapshot, 'ratelimit_check_duration_ms')).toEqual({ '': 14 })
    expect(numbersOf(snapshot, 'ratelimit_store_info')).toEqual({ local: 1 })
    expect(numbersOf(snapshot, 'ratelimit_store_keys')).toEqual({ '': 3 })
    expect(numbersOf(snapshot, 'sluice_threads')).toEqual({ '': 1 })
    expect(numbersOf(snapshot, 'ratelimit_redis_errors_total')).toEqual({ '': 0 })
  })

  it('is near the limit from a fifth on', () => {
    const { engine, metrics } = createScene({
      ruleSet: { rules: [{ resource: '/data', dimension: 'user', limit: 10, window: '1m' }] },
    })
    const near = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(() => {
      engine.check({ resource: '/data', user: 'ann' })
      return numbersOf(metrics.snapshot(), 'ratelimit_near_limit_total')['user /data']
    })
    expect(near).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 2, 3])
  })

  it('counts unmatched and anonymous checks, and logs the first of each per rule set', () => {
    const { engine, metrics, log } = createScene({ ruleSet: RULES })
    const counts = (): unknown[] =>
      ['ratelimit_unmatched_checks_total', 'ratelimit_anonymous_checks_total'].map(
        (name) => numbersOf(metrics.snapshot(), name)[''],
      )
    engine.check({ resource: '/data', user: 'ann', ip: '192.0.2.1' })
    engine.check({ resource: '/health' })
    expect(counts()).toEqual([0, 1])
    for (let call = 0; call < 3; call++) engine.check({ resource: '/elsewhere', method: 'GET', user: 'ann' })
    engine.check({ resource: '/data', descriptors: { plan: 'free' } })
    engine.check({ resource: '/data', user: '', descriptors: {} })
    engine.decideDescriptors({ domain: 'shop', descriptors: [{ entries: [{ key: 'k', value: 'v' }] }] })
    expect(counts()).toEqual([6, 2])
    const anonymous = expect.stringMatching(/^a check names no caller/)
    expect(log.entries()).toMatchObject([
      { level: 'warn', message: anonymous },
      { level: 'warn', message: 'a check matched no rule', identities: ['user'], version: 0 },
      { level: 'warn', message: 'a check by descriptors has an unknown domain' },
    ])
    expect(log.lines.join('')).not.toMatch(/ann|elsewhere|shop/)
    engine.use({ enforced: { number: 2, ruleSet: { rules: [] } } })
    for (let call = 0; call < 3; call++) engine.check({ resource: '/data', descriptors: { plan: 'free' } })
    expect(log.entries().slice(3)).toMatchObject([{ identities: ['descriptors'], version: 2 }])
    expect(counts()).toEqual([9, 2])
  })

  it('counts checks by descriptors as unmatched only where no descriptor has a rule', () => {
    const { engine, metrics, log } = createScene({
      ruleSet: {
        rules: [],
        domains: [
          {
            domain: 'shop',
            descriptors: [
              { key: 'user', limit: { unit: 'minute', requestsPerUnit: 1 } },
              { key: 'user', value: 'staff', limit: { unlimited: true } },
            ],
          },
        ],
      },
    })
    const ask = (...entries: readonly [string, string][]): void => {
      const descriptors = entries.map(([key, value]) => ({ entries: [{ key, value }] }))
      engine.decideDescriptors({ domain: 'shop', descriptors })
    }
    ask(['user', 'ann'], ['other', 'x'])
    ask(['user', 'staff'])
    ask(['user', 'staff'], ['other', 'x'])
    expect(numbersOf(metrics.snapshot(), 'ratelimit_unmatched_checks_total')).toEqual({ '': 0 })
    ask(['other', 'x'], ['user_id', 'ann'])
    expect(numbersOf(metrics.snapshot(), 'ratelimit_unmatched_checks_total')).toEqual({ '': 1 })
    expect(log.entries()).toMatchObject([{ message: 'a check by descriptors matched no limit' }])
  })

  it('logs dimensions that are neither built in nor declared, whenever such rules are put in force', () => {
    const { engine, log } = createScene()
    const ruleSet: RuleSet = {
      dimensions: ['plan'],
      rules: ['usr', 'plan', 'seat'].map((dimension) => ({ resource: '*', dimension, limit: 1, window: '1m' })),
    }
    engine.use({ enforced: { number: 7, ruleSet } })
    expect(log.entries()).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('neither built in nor declared'),
        dimension: 'usr',
        paths: ['/rules/0/dimension'],
        version: 7,
        advice: expect.stringMatching(/^Did you mean "user"\? .*"dimensions"/),
      },
      { dimension: 'seat', paths: ['/rules/2/dimension'], advice: expect.stringMatching(/^Correct it/) },
    ])
    expect(engine.undeclaredDimensions.map(({ dimension }) => dimension)).toEqual(['usr', 'seat'])
    engine.use({ enforced: { number: 8, ruleSet: { ...ruleSet, dimensions: ['usr', 'plan', 'seat'] } } })
    expect(log.lines).toHaveLength(2)
  })

  it('counts errors of checks', () => {
    const { engine, metrics } = createScene({ ruleSet: RULES })
    expect(() => engine.check({ resource: '' })).toThrow()
    expect(numbersOf(metrics.snapshot(), 'ratelimit_check_errors_total')).toEqual({ '': 1 })
  })

  it('counts descriptors under their domain', () => {
    const { engine, metrics } = createScene({
      ruleSet: {
        rules: [],
        domains: [{ domain: 'shop', descriptors: [{ key: 'k', limit: { unit: 'minute', requestsPerUnit: 1 } }] }],
      },
    })
    const descriptors = [{ entries: [{ key: 'k', value: 'ann' }] }]
    for (let call = 0; call < 3; call++) engine.decideDescriptors({ domain: 'shop', descriptors })
    engine.decideDescriptors({ domain: 'ann', descriptors })
    expect(numbersOf(metrics.snapshot(), 'ratelimit_checks_total')).toEqual({
      'descriptor shop allowed': 1,
      'descriptor shop denied': 2,
      'descriptor other allowed': 1,
      'descriptor other denied': 0,
    })
    expect(numbersOf(metrics.snapshot(), 'ratelimit_denials_total')).toEqual({
      'descriptor shop': 2,
      'descriptor other': 0,
    })
    expect(numbersOf(metrics.snapshot(), 'ratelimit_near_limit_total')).toEqual({
      'descriptor shop': 1,
      'descriptor other': 0,
    })
    expect(numbersOf(metrics.snapshot(), 'ratelimit_decisions_total')).toMatchObject({
      allowed: 1,
      limit: 2,
      unlimited: 1,
    })
  })

  it('counts shadows of rules and of a whole version, under their own resources', () => {
    const { engine, metrics } = createScene()
    engine.use({
      enforced: {
        number: 1,
        ruleSet: { rules: [{ resource: '/data', dimension: 'user', limit: 1, window: '1m', shadow: true }] },
      },
      candidate: {
        number: 2,
        stage: 'shadow',
        percent: 0,
        ruleSet: { rules: [{ resource: '/data/*', dimension: 'tenant', limit: 2, window: '1m' }] },
      },
    })
    for (let call = 0; call < 3; call++) engine.check({ resource: '/data', user: 'ann', tenant: 't' })
    expect(numbersOf(metrics.snapshot(), 'ratelimit_shadow_checks_total')).toEqual({
      'user /data allowed rule': 1,
      'user /data denied rule': 2,
      'tenant /data/* allowed version': 2,
      'tenant /data/* denied version': 1,
    })
  })

  it('counts blocks, and shows how many entries there are', () => {
    const { engine, metrics, log } = createScene({
      ruleSet: {
        rules: [
          {
            resource: '/login',
            dimension: 'ip',
            limit: 1,
            window: '1m',
            penalty: { after: 2, within: '1m', block: '1h' },
          },
        ],
      },
    })
    for (let call = 0; call < 5; call++) engine.check({ resource: '/login', ip: '192.0.2.1' })
    engine.block('user', 'mallory', { duration: '1h' })
    const snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'ratelimit_blocks_total')).toEqual({ 'ip penalty': 1, 'user set': 1 })
    expect(numbersOf(snapshot, 'ratelimit_entries')).toEqual({ override: 0, member: 0, block: 2 })
    expect(numbersOf(snapshot, 'ratelimit_decisions_total')).toMatchObject({ allowed: 1, limit: 2, blocked: 2 })
    expect(log.entries()).toMatchObject([
      { level: 'info', message: 'a caller was blocked', dimension: 'ip', strikes: 1, rule: '/login@ip' },
      { level: 'info', message: 'a caller was blocked', dimension: 'user', strikes: 1 },
    ])
  })

  it('shows how up to date the configuration is', () => {
    const scene = createScene()
    const counts = { refreshes: 12, failures: 2, notifications: 3, polls: 9 }
    scene.config = { ...scene.config, ...counts, enforcedVersion: 4, candidateVersion: 5, lagMs: 1500 }
    scene.metrics.snapshot()
    scene.config = { ...scene.config, refreshes: 15 }
    scene.instrument.observeConfig({
      type: 'refreshed',
      source: 'database',
      enforcedVersion: 4,
      candidateVersion: 5,
      changes: 0,
      reloaded: false,
    })
    const snapshot = scene.metrics.snapshot()
    const numberOf = (name: string): number | undefined => numbersOf(snapshot, name)['']
    expect(numberOf('ratelimit_config_refreshes_total')).toBe(15)
    expect(numberOf('ratelimit_config_failures_total')).toBe(2)
    expect(numberOf('ratelimit_config_notifications_total')).toBe(3)
    expect(numberOf('ratelimit_config_polls_total')).toBe(9)
    expect(numberOf('ratelimit_config_changes_total')).toBe(1)
    expect(numberOf('ratelimit_config_version')).toBe(4)
    expect(numberOf('ratelimit_config_candidate_version')).toBe(5)
    expect(numberOf('ratelimit_config_lag_seconds')).toBe(1.5)
    expect(numberOf('ratelimit_config_refused_versions')).toBe(0)
  })

  it('counts leases and their units', () => {
    const { instrument, metrics } = createScene()
    instrument.observeLeases({ type: 'lease-granted', rule: 'r', units: 10 })
    instrument.observeLeases({ type: 'lease-ended', rule: 'r', units: 10, spent: 7 })
    instrument.observeLeases({ type: 'lease-settled', rule: 'r', units: 10, spent: 7 })
    instrument.observeLeases({ type: 'lease-failed', rule: 'r', error: new Error('gone') })
    const snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'ratelimit_leases_total')).toEqual({ '': 1 })
    expect(numbersOf(snapshot, 'ratelimit_lease_units_total')).toEqual({ granted: 10, spent: 7, returned: 3 })
    expect(numbersOf(snapshot, 'ratelimit_lease_failures_total')).toEqual({ '': 1 })
  })

  it('counts regions of the rules and of the node by name, whatever regions callers invent', () => {
    const own = { resource: '/data', dimension: 'user', limit: 100, window: '1m', regions: { 'eu-1': 2 } } as const
    const ruleSet: RuleSet = {
      rules: [own],
      regions: { US: 1 },
      tiers: [{ name: 'gold', rules: [{ ...own, regions: { 'ap-2': 2 } }] }],
      exemptions: [
        {
          name: 'free',
          match: { dimension: 'user', entities: ['absent'] },
          rules: [{ ...own, regions: { 'sa-1': 2 } }],
        },
      ],
    }
    const { engine, metrics } = createScene({ region: 'home' })
    engine.use({ enforced: { number: 1, ruleSet } })
    const from = (region: string) => engine.check({ resource: '/data', user: 'ann', region })
    for (let number = 0; number < 70; number++) from(`invented-${number}`)
    for (const region of ['US', 'eu-1', 'ap-2', 'sa-1', 'home', 'home']) from(region)
    const counts = (): Record<string, number> => {
      const numbers = Object.entries(numbersOf(metrics.snapshot(), 'ratelimit_region_checks_total'))
      return Object.fromEntries(numbers.filter(([name, count]) => name.endsWith(' allowed') && count > 0))
    }
    const overflow = (): number | undefined =>
      numbersOf(metrics.snapshot(), 'sluice_metrics_overflow_total')['ratelimit_region_checks_total']
    expect(counts()).toEqual({
      'other allowed': 70,
      'US allowed': 1,
      'eu-1 allowed': 1,
      'ap-2 allowed': 1,
      'sa-1 allowed': 1,
      'home allowed': 2,
    })
    expect(overflow()).toBe(70)
    // A region of the candidate is known, and one that no rule set has any more is not.
    engine.use({
      enforced: { number: 2, ruleSet: { rules: [own] } },
      candidate: { number: 3, stage: 'shadow', percent: 0, ruleSet: { rules: [own], regions: { CA: 1 } } },
    })
    for (const region of ['CA', 'US', 'eu-1']) from(region)
    expect(counts()).toEqual({
      'other allowed': 71,
      'US allowed': 1,
      'eu-1 allowed': 2,
      'ap-2 allowed': 1,
      'sa-1 allowed': 1,
      'home allowed': 2,
      'CA allowed': 1,
    })
    expect(overflow()).toBe(71)
  })

  it('has as many series after a million callers, paths and regions as after a hundred', () => {
    const { engine, metrics, instrument } = createScene({
      ruleSet: { rules: [{ resource: '/data/*', dimension: 'user', limit: 1, window: '1m' }] },
    })
    const requestOf = (number: number) => ({
      resource: `/data/${number}`,
      user: `user-${number}`,
      ip: `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`,
      region: `region-${number}`,
      tier: `tier-${number}`,
      descriptors: { [`d${number % 100}`]: `v${number}` },
    })
    const seriesCount = (): number => metrics.snapshot().families.reduce((sum, { samples }) => sum + samples.length, 0)
    for (let number = 0; number < 100; number++) engine.check(requestOf(number))
    engine.check(requestOf(0))
    const before = seriesCount()
    for (let number = 100; number < 20_000; number++) engine.check(requestOf(number))
    // The rest as if the engine had decided: it is slower than what is tried here.
    const [allowed, denied] = [engine.check(requestOf(20_000)), engine.check(requestOf(20_000))]
    for (let number = 20_001; number < 1_000_000; number++) {
      instrument.checked(requestOf(number), number % 2 === 0 ? allowed : denied, 1)
    }
    expect(seriesCount()).toBe(before)
    expect(Object.keys(numbersOf(metrics.snapshot(), 'ratelimit_region_checks_total'))).toHaveLength(2 * 2)
    const [users] = instrument.report().top.dimensions
    expect(users!.callers.entries.length).toBeLessThanOrEqual(2000)
  })

  it('counts the lines of the log by what became of them', () => {
    const { metrics, log } = createScene()
    for (let line = 0; line < 60; line++) log.logger.info('again')
    metrics.snapshot()
    log.logger.info('another')
    expect(numbersOf(metrics.snapshot(), 'sluice_log_lines_total')).toEqual({ written: 51, suppressed: 10, dropped: 0 })
  })

  it('tells alerts of checks and of calls of the store, each once', () => {
    const told: unknown[][] = []
    const signals = {
      recordCheck: (denied: boolean) => void told.push(['check', denied]),
      recordStoreCall: (micros: number, failed: boolean) => void told.push(['store', micros, failed]),
    }
    const { engine, instrument } = createScene({
      signals,
      ruleSet: { rules: [{ resource: '/data', dimension: 'user', limit: 1, window: '1m' }] },
    })
    engine.check({ resource: '/data', user: 'ann' })
    engine.check({ resource: '/data', user: 'ann' })
    expect(told).toEqual([
      ['check', false],
      ['check', true],
    ])
    told.length = 0
    const events: StoreEvent[] = [
      { type: 'asked', micros: 120, outcome: 'answered' },
      { type: 'asked', micros: 130, outcome: 'misused' },
      // A deadline: asked, and no answer.
      { type: 'asked', micros: 50_000, outcome: 'failed' },
      { type: 'failed', cause: 'deadline', charged: 'unknown', error: undefined },
      // A deadline before the call was sent.
      { type: 'asked', micros: 60_000, outcome: 'failed' },
      { type: 'failed', cause: 'deadline', charged: 'no', error: undefined },
      // The breaker of one primary of a cluster.
      { type: 'asked', micros: 10, outcome: 'failed' },
      { type: 'failed', cause: 'breaker', charged: 'no', error: new Error('no connection') },
      // Not asked.
      { type: 'failed', cause: 'breaker', charged: 'no', error: undefined },
    ]
    for (const event of events) instrument.observeStore(event)
    expect(told).toEqual([
      ['store', 120, false],
      ['store', 130, false],
      ['store', 50_000, true],
      ['store', 60_000, true],
      ['store', 10, true],
      ['store', 0, true],
    ])
  })
})

describe('Instrument on a store that fails', () => {
  it('counts errors, failure modes and the breaker, and writes few lines', async () => {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const random = seededRandom(1)
    const metrics = new MetricRegistry()
    const log = captureLog(clock)
    const instrument = new Instrument({ metrics, log: log.logger, clock, secret: SECRET })
    const inner = deferredStore(memoryStore({ clock, random }))
    let isAway = false
    const flaky: Store<'async'> = {
      ...inner,
      decide: (batch) =>
        isAway
          ? Promise.reject(storeUnavailable({ because: 'unreachable', problem: 'there is no connection' }))
          : inner.decide(batch),
    }
    const monotonicMs = (): number => clock.nowMicros() / 1000
    const store = fallbackStore(flaky, { observe: instrument.observeStore, clock, timers, random, monotonicMs })
    const engine = new ObservedEngine<'async'>(
      { store, clock, random, ruleSet: RULES },
      { observer: instrument, monotonicMs },
    )
    const request = { resource: '/data', user: 'ann' }
    await engine.check(request)
    isAway = true
    for (let call = 0; call < 8; call++) await engine.check(request)
    let snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'ratelimit_breaker_state')).toEqual({ '': 2 })
    // Without the store, the remaining quota is unknown, so no check counts as near its limit.
    expect(numbersOf(snapshot, 'ratelimit_near_limit_total')).toEqual({ 'user /data': 0 })
    // Five calls failed, then the breaker kept three from being made.
    expect(numbersOf(snapshot, 'ratelimit_redis_errors_total')).toEqual({ '': 5 })
    expect(numbersOf(snapshot, 'ratelimit_store_failures_total')).toEqual({
      deadline: 0,
      unreachable: 5,
      refused: 0,
      breaker: 3,
    })
    expect(numbersOf(snapshot, 'ratelimit_store_calls_total')).toEqual({ answered: 1, failed: 5, misused: 0 })
    expect(numbersOf(snapshot, 'ratelimit_failure_mode_checks_total')).toEqual({ open: 8, closed: 0, local: 0 })
    expect(numbersOf(snapshot, 'ratelimit_store_duration_ms')).toEqual({ '': 6 })
    expect(numbersOf(snapshot, 'ratelimit_breaker_opened_total')).toEqual({ '': 1 })
    isAway = false
    clock.advance(10_000)
    await engine.check(request)
    snapshot = metrics.snapshot()
    expect(numbersOf(snapshot, 'ratelimit_breaker_state')).toEqual({ '': 0 })
    expect(log.entries().map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'Redis is unavailable: failure modes decide'],
      ['warn', 'Redis is available again'],
    ])
    await store.close()
  })
})

describe('parseMetricsPage', () => {
  it('refuses what is no page', () => {
    expect(() => parseMetricsPage('a 1')).toThrow('does not end')
    expect(() => parseMetricsPage('a{b="c"d} 1\n')).toThrow('not labels')
    expect(() => parseMetricsPage('a b\n')).toThrow('not a number')
    expect(() => parseMetricsPage('a-b 1\n')).toThrow('not a sample')
    expect(parseMetricsPage('# TYPE a gauge\na{b="c\\"\\n\\\\",d=""} 1\n')).toEqual([
      { name: 'a', labels: { b: 'c"\n\\', d: '' }, value: 1 },
    ])
  })
})
