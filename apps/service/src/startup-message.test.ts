import { describe, expect, it } from 'vitest'
import { testSettings } from './service.fixture.ts'
import type { Settings } from './settings.ts'
import type { StartupFacts } from './startup-message.ts'
import { startupMessage } from './startup-message.ts'

const RULES: NonNullable<StartupFacts['rules']> = { enforcedVersion: 1, source: 'database' }

function message(settings: Partial<Settings> = {}, facts: Partial<StartupFacts> = {}): string {
  return startupMessage({ settings: testSettings(settings), port: 8080, rules: RULES, reasons: [], ...facts })
}

const REDIS = {
  isCluster: false,
  sentinel: undefined,
  prefix: 'sluice',
  leases: false,
  failureMode: 'open',
  deadlineMs: 50,
} as const

describe('the message at the start', () => {
  it('says what runs, where, what it remembers where, who can reach it, and what to try', () => {
    expect(message().split('\n')).toEqual([
      'Sluice is running.',
      '  check API   http://127.0.0.1:8080/internal/ratelimit/check',
      '  admin API   http://127.0.0.1:8080/admin, with an API key; http://127.0.0.1:8080/openapi.json describes it',
      '  metrics     http://127.0.0.1:8080/metrics',
      '  health      http://127.0.0.1:8080/livez and http://127.0.0.1:8080/readyz',
      '  counters    in the memory of this process',
      '  rules       version 1, from SQLite in .sluice',
      '  reach       this machine only; HOST=0.0.0.0 npm start opens it to others',
      'Try it:',
      `  curl -i http://127.0.0.1:8080/internal/ratelimit/check -H 'Content-Type: application/json' -d '{"userId":"user-123","resource":"/api/v1/data"}'`,
    ])
  })

  it('shows where things are, and no secrets', () => {
    const urls = ['redis://user:hunter2@one:6379/3', 'redis://user:hunter2@two:6379/3']
    const text = message({
      redis: { ...REDIS, urls },
      databaseUrl: 'postgres://user:hunter2@db:5432/sluice?password=hunter2',
    })
    expect(text).toContain('  counters    in Redis at redis://one:6379/3, redis://two:6379/3\n')
    expect(text).toContain('  rules       version 1, from postgres://db:5432/sluice\n')
    expect(text).not.toContain('hunter2')
  })

  it('names the threads, the file of the rules, and that there are none yet', () => {
    const text = message({ threads: 4, rulesFile: 'sluice.yaml' })
    expect(text).toContain('in memory shared by the 4 threads of this process')
    expect(text).toContain('  rules       version 1, from sluice.yaml\n')
    const settings = testSettings()
    expect(startupMessage({ settings, port: 1, rules: undefined, reasons: [] })).toContain('none yet')
    expect(message({}, { rules: { source: 'none', enforcedVersion: undefined } })).toContain('none yet')
  })

  it('says that rules are from the copy on disk while the database is unreachable', () => {
    const databaseUrl = 'postgres://user:hunter2@db:5432/sluice'
    expect(message({ databaseUrl }, { rules: { enforcedVersion: 1, source: 'disk' } })).toContain(
      '  rules       version 1, from the copy in .sluice\n',
    )
  })

  it('warns of all that is wrong, before the command to try', () => {
    const reasons = [
      { code: 'redis-unreachable', message: 'Redis is unreachable. Do this.' },
      { code: 'version-refused', message: 'Version 2 cannot be used. Do that.' },
    ] as const
    expect(message({}, { reasons })).toMatch(
      /\n {2}WARNING {5}Redis is unreachable\. Do this\.\n {2}WARNING {5}Version 2 cannot be used\. Do that\.\nTry it:\n/,
    )
  })

  it.each([
    ['0.0.0.0', 'http://127.0.0.1:8080/', 'all who reach 0.0.0.0'],
    ['::', 'http://[::1]:8080/', 'all who reach ::'],
    ['::1', 'http://[::1]:8080/', 'this machine only'],
    ['localhost', 'http://localhost:8080/', 'this machine only'],
    ['192.0.2.7', 'http://192.0.2.7:8080/', 'all who reach 192.0.2.7'],
  ])('on %s shows addresses that can be connected to, and who can', (host, address, reach) => {
    expect(message({ host })).toContain(address)
    expect(message({ host })).toContain(`  reach       ${reach}`)
  })

  it('says whether the check API requires a key where others can reach it, and uses one in the example', () => {
    const withKey = message({ host: '0.0.0.0', checkKey: true })
    expect(withKey).toContain('; the check API requires an API key (--no-check-key: none)\n')
    expect(withKey).toContain(' -H "Authorization: Bearer $SLUICE_API_KEY" ')
    const without = message({ host: '0.0.0.0', checkKey: false })
    expect(without).toContain('; the check API requires no API key (--check-key requires one)\n')
    expect(without).not.toContain('Authorization')
  })
})
