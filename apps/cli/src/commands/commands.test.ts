import { createClient } from '@sluice/client'
import type {
  ApiKey,
  CheckAnswer,
  DiffAnswer,
  Explanation,
  IssuedApiKey,
  LiveSample,
  Override,
  RateLimits,
  Stored,
  UsageAnswer,
  Version,
  VersionContent,
} from '@sluice/contract'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RunOptions, RunOutcome } from '../cli.test.support.ts'
import { cliRunner } from '../cli.test.support.ts'
import type { ServiceProcess } from '../service-process.test.support.ts'
import { startServiceProcess } from '../service-process.test.support.ts'
import { moveToStage } from './rules/versions.ts'

// Every command against the real service. The tests share one service; each has resources and callers of its own.

let service: ServiceProcess

beforeAll(async () => {
  service = await startServiceProcess()
})

afterAll(() => service.close())

function sluice(options: RunOptions = {}): (...args: string[]) => Promise<RunOutcome> {
  return cliRunner({ ...options, env: { SLUICE_URL: service.url, SLUICE_API_KEY: service.adminKey } })
}

/** Runs a command with --json that is to go well, and gives what it printed. */
async function value<T>(args: readonly string[], options: RunOptions = {}): Promise<T> {
  const outcome = await sluice(options)(...args, '--json')
  expect(outcome.err).toBe('')
  expect(outcome.code).toBe(0)
  return outcome.json<T>()
}

/** Runs a command that is to go well, and gives the lines that it printed. */
async function lines(args: readonly string[], options: RunOptions = {}): Promise<readonly string[]> {
  const outcome = await sluice(options)(...args)
  expect(outcome.err).toBe('')
  expect(outcome.code).toBe(0)
  return outcome.out.trimEnd().split('\n')
}

/** A file with one rule for a resource. */
function ruleFile(resource: string, limit: number, more = ''): Readonly<Record<string, string>> {
  return { 'rule.yaml': `resource: ${resource}\nrules:\n  - { dimension: user, limit: ${limit}, window: 1h${more} }\n` }
}

async function putRule(resource: string, limit: number): Promise<{ readonly version: number }> {
  return await value(['rules', 'put', 'rule.yaml'], { files: ruleFile(resource, limit) })
}

/** The version that was made last. */
async function newest(): Promise<Version | undefined> {
  return (await value<{ readonly items: readonly Version[] }>(['rules', 'versions', '--limit', '1'])).items[0]
}

describe('check', () => {
  it('ends with 0 while the limit allows, then with 3', async () => {
    await putRule('/check', 2)
    const check = ['check', '/check', '--user', 'u1']
    expect(await value<CheckAnswer>(check)).toMatchObject({ allowed: true, limit: 2, remaining: 1, dimension: 'user' })
    expect(await lines(check)).toEqual(expect.arrayContaining([expect.stringMatching(/^remaining +0$/)]))
    const denied = await sluice()(...check, '--json')
    expect(denied.code).toBe(3)
    expect(denied.err).toBe('')
    expect(denied.json()).toMatchObject({ allowed: false, reason: 'limit', remaining: 0 })
    const told = await sluice()(...check)
    expect(told.out).toMatch(/^result +denied: the limit is used up\n/)
    expect(told.out).toMatch(/^retry in +\d+ s$/m)
  })

  it('is coloured where there is colour', async () => {
    await putRule('/colour', 1)
    const check = ['check', '/colour', '--user', 'u1']
    const run = cliRunner({ env: { SLUICE_URL: service.url, FORCE_COLOR: '1' } })
    const shown = async (): Promise<string> => (await run(...check)).out.replaceAll('\u001B', '')
    expect(await shown()).toMatch(/^result +\[32mallowed\[39m\n/)
    expect(await shown()).toMatch(/^result +\[31mdenied: the limit is used up\[39m\n/)
  })

  it('takes nothing with --peek', async () => {
    await putRule('/peek', 2)
    for (let call = 0; call < 3; call++) {
      expect(await value<CheckAnswer>(['check', '/peek', '--user', 'u1', '--peek'])).toMatchObject({ remaining: 2 })
    }
  })

  it('passes on everything that a check can say', async () => {
    const files = {
      'rule.yaml':
        'resource: /every/field\nrules:\n  - { dimension: tenant+model, methods: [PUT], limit: 100, window: 1h }\n',
    }
    await value(['rules', 'put', 'rule.yaml'], { files })
    const everything = ['--user', 'u', '--api-key', 'k', '--ip', '192.0.2.1', '--tenant', 't', '--method', 'PUT']
    const more = ['--tokens', '7', '--descriptor', 'model=large', '--number', 'bytes=12.5', '--region', 'EU']
    const answer = await value<CheckAnswer>([
      'check',
      '/every/field',
      ...everything,
      ...more,
      ...['--tier', 'gold', '--service', 'mail'],
    ])
    expect(answer).toMatchObject({ dimension: 'tenant+model', remaining: 93 })
    // Its dimension is not declared, which makes the service degraded.
    expect(await lines(['top', '--count', '1'])).toEqual([expect.stringMatching(/ {2}DEGRADED dimension-undeclared$/)])
    await value(['rules', 'delete', '/every/field'])
  })
})

describe('explain', () => {
  it('lists the rules and what they mean for the call', async () => {
    await putRule('/explain', 5)
    const explanation = await value<Explanation>(['explain', '/explain', '--user', 'u1'])
    expect(explanation.rules[0]).toMatchObject({ resource: '/explain', fate: 'applies', entity: 'u1' })
    expect(explanation.decision).toMatchObject({ allowed: true, limit: 5 })
    const told = await lines(['explain', '/explain', '--user', 'u1'])
    expect(told).toContainEqual(expect.stringMatching(/^applies {3}\/explain@user for u1: /))
    expect(told).toContainEqual(expect.stringMatching(/^ +used 0 of 5, /))
  })
})

describe('usage and reset', () => {
  it('show what was used, and forget it', async () => {
    await putRule('/usage', 5)
    await value(['check', '/usage', '--user', 'u1', '--tokens', '3'])
    const used = async (): Promise<number | null | undefined> => {
      const { usage } = await value<UsageAnswer>(['usage', '/usage', '--user', 'u1'])
      return usage.find(({ resource }) => resource === '/usage')?.counters[0]?.used
    }
    expect(await used()).toBe(3)
    expect(await lines(['usage', '/usage', '--user', 'u1'])).toContainEqual(
      expect.stringMatching(/^\/usage@user +user:u1 +3 +5 +2 /),
    )
    expect(await value(['reset', '/usage', '--user', 'u1', '--note', 'test'])).toEqual({ reset: true, count: 1 })
    expect(await used()).toBe(0)
    expect(await lines(['reset', '/usage', '--user', 'u1'])).toEqual([
      'Reset the counters of user:u1 on /usage, under 1 rule.',
    ])
  })

  it('say that nothing was reset where no rule counts the caller', async () => {
    await putRule('/usage', 5)
    expect(await value(['reset', '/usage', '--tenant', 'acme'])).toEqual({ reset: false, count: 0 })
    expect(await lines(['reset', '/usage', '--tenant', 'acme'])).toEqual([
      'Nothing was reset: no rule counts this caller.',
    ])
  })

  it('need a caller', async () => {
    for (const name of ['usage', 'reset']) {
      const outcome = await sluice()(name)
      expect(outcome.code).toBe(2)
      expect(outcome.err).toContain('SLUICE_CLI_USAGE: Pass a resource or a caller')
    }
  })
})

describe('rules', () => {
  it('are set from a file, listed and shown as a file', async () => {
    const put = await lines(['rules', 'put', 'rule.yaml'], { files: ruleFile('/rules', 7, ', methods: [GET]') })
    expect(put).toEqual([expect.stringMatching(/^Set 1 rule for \/rules, enforced as version \d+\.$/)])
    const list = await value<{ version: number; items: RateLimits[] }>(['rules', 'list'])
    expect(list.items).toContainEqual({
      resource: '/rules',
      rules: [{ dimension: 'user', limit: 7, window: '1h', methods: ['GET'] }],
    })
    const told = await lines(['rules', 'list'])
    expect(told[0]).toBe(`version ${list.version}`)
    expect(told).toContainEqual(expect.stringMatching(/^\/rules +user +7 +1h +gcra +- +GET$/))
    const file = (await lines(['rules', 'get', '/rules'])).join('\n')
    expect(file).toContain(`# version ${list.version}:`)
    expect(await value(['rules', 'get', '/rules'])).toMatchObject({ resource: '/rules', version: list.version })
    // What is shown can be given back as it is.
    const again = await value<{ version: number }>(
      ['rules', 'put', 'shown.yaml', '--if-version', String(list.version)],
      { files: { 'shown.yaml': file } },
    )
    expect(again).toMatchObject({ resource: '/rules', rules: [{ limit: 7 }] })
    const late = await sluice({ files: { 'shown.yaml': file } })('rules', 'put', 'shown.yaml', '--if-version', '1')
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
  })

  it('are deleted, and come back with a rollback', async () => {
    const { version } = await putRule('/gone', 1)
    const late = await sluice()('rules', 'delete', '/gone', '--if-version', String(version - 1))
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
    expect(await value(['rules', 'delete', '/gone'])).toEqual({ deleted: { resource: '/gone' } })
    const missing = await sluice()('rules', 'get', '/gone')
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('SLUICE_CLI_NOT_FOUND')])
    expect(await value<Version>(['rules', 'rollback', '--note', 'too early'])).toMatchObject({ number: version })
    expect(await value(['rules', 'get', '/gone'])).toMatchObject({ resource: '/gone' })
    await putRule('/gone', 2)
    const told = await lines(['rules', 'rollback', '--to', String(version)])
    expect(told).toEqual(expect.arrayContaining([`version   ${version}`, 'stage     enforce']))
    expect(await value(['rules', 'get', '/gone'])).toMatchObject({ rules: [{ limit: 1 }] })
  })

  it('are versions as a whole: drafts, stages, differences', async () => {
    const { version } = await putRule('/whole', 1)
    const { ruleSet } = await value<VersionContent>(['rules', 'get'])
    const rules = ruleSet.rules.map((rule) => (rule.resource === '/whole' ? { ...rule, limit: 9 } : rule))
    const changed = { ...ruleSet, rules }
    const files = { 'rules.json': JSON.stringify(changed) }
    const put = ['rules', 'put', 'rules.json', '--if-version', String(version)]
    const draft = await value<Version>([...put, '--stage', 'draft', '--note', 'nine'], { files })
    expect(draft).toMatchObject({ stage: 'draft', basedOn: version, note: 'nine' })
    const diff = await value<DiffAnswer>(['rules', 'diff', String(draft.number)])
    expect(diff).toMatchObject({ from: version, to: draft.number, changes: [{ change: 'changed', part: 'rules' }] })
    expect(await lines(['rules', 'diff', String(version), String(draft.number)])).toEqual([
      `from version ${version} to ${draft.number}`,
      '~ rules /whole@user',
      expect.stringMatching(/^ +- .*"limit":1,/),
      expect.stringMatching(/^ +\+ .*"limit":9,/),
    ])
    const same = await lines(['rules', 'diff', String(version), String(version)])
    expect(same[1]).toBe('No differences.')
    const stage = ['rules', 'stage', String(draft.number)]
    expect(await value<Version>([...stage, 'shadow'])).toMatchObject({ stage: 'shadow' })
    expect(await value<Version>([...stage, 'percent', '--percent', '12.5'])).toMatchObject({ percent: 12.5 })
    const late = await sluice()(...stage, 'enforce', '--if-revision', '1')
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
    expect(await lines([...stage, 'enforce'])).toContain('stage     enforce')
    expect(await value(['rules', 'get', '/whole'])).toMatchObject({ rules: [{ limit: 9 }] })
    expect(await value<VersionContent>(['rules', 'get', '--at', String(version)])).toMatchObject({ number: version })
    const { items } = await value<{ items: Version[] }>(['rules', 'versions', '--limit', '2'])
    expect(items.map(({ number, stage: at }) => [number, at])).toEqual([
      [draft.number, 'enforce'],
      [version, 'retired'],
    ])
    expect((await lines(['rules', 'versions']))[1]).toMatch(new RegExp(`^${draft.number} +enforce +${version} `))
  })

  it('of a whole file are enforced unless it is said otherwise', async () => {
    const { ruleSet } = await value<VersionContent>(['rules', 'get'])
    const files = { 'rules.json': JSON.stringify(ruleSet) }
    expect(await value<Version>(['rules', 'put', 'rules.json'], { files })).toMatchObject({ stage: 'enforce' })
    const shadow = await lines(['rules', 'put', 'rules.json', '--stage', 'percent', '--percent', '5'], { files })
    expect(shadow).toContain('stage     percent: 5 %')
    const number = shadow[0]!.replace(/\D*(\d+).*/, '$1')
    expect(await value<Version>(['rules', 'stage', number, 'retired'])).toMatchObject({ stage: 'retired' })
  })

  it('of a whole file do not overwrite a newer version without --force', async () => {
    await putRule('/mine', 1)
    const { number, ruleSet } = await value<VersionContent>(['rules', 'get'])
    const withRule = (name: string): object => ({
      ...ruleSet,
      rules: [...ruleSet.rules, { resource: `/${name}`, dimension: 'user', limit: 1, window: '1h' }],
    })
    const files = { 'a.json': JSON.stringify(withRule('of-a')), 'b.json': JSON.stringify(withRule('of-b')) }
    // A file that only adds rules replaces nothing.
    const first = await value<Version>(['rules', 'put', 'a.json'], { files })
    expect(first).toMatchObject({ stage: 'enforce', basedOn: number })
    for (const stage of [['enforce'], ['shadow'], ['percent', '--percent', '10']]) {
      const rejected = await sluice({ files })('rules', 'put', 'b.json', '--stage', ...stage)
      expect(rejected.code).toBe(1)
      expect(rejected.err).toContain(
        `SLUICE_CLI_WOULD_REPLACE: Version ${first.number} is enforced. The file would remove or change: rules ` +
          '/of-a@user (removed). Nothing was stored.\n',
      )
      expect(rejected.err).toContain(`repeat with --if-version ${first.number}.`)
      expect(rejected.err).toContain('use --force.')
    }
    const late = await sluice({ files })('rules', 'put', 'b.json', '--if-version', String(number))
    expect(late.code).toBe(1)
    expect(late.err).toContain(
      `SLUICE_CLI_WOULD_REPLACE: Version ${first.number} is enforced, expected version ${number}`,
    )
    expect(await newest()).toMatchObject({ number: first.number, stage: 'enforce' })
    expect(await value(['rules', 'get', '/of-a'])).toMatchObject({ resource: '/of-a' })
    const draft = await lines(['rules', 'put', 'b.json', '--stage', 'draft'], { files })
    expect(draft).toContainEqual(
      expect.stringMatching(new RegExp(`^Compared with version ${first.number}: 1 added, 0 changed, 1 removed\\. `)),
    )
    const seen = await value<Version>(['rules', 'put', 'b.json', '--if-version', String(first.number)], { files })
    expect(seen).toMatchObject({ stage: 'enforce', basedOn: first.number })
    const forced = await value<Version>(['rules', 'put', 'a.json', '--force'], { files })
    expect(forced).toMatchObject({ stage: 'enforce', basedOn: seen.number })
    const both = await sluice({ files })('rules', 'put', 'a.json', '--force', '--if-version', '1')
    expect([both.code, both.err]).toEqual([2, expect.stringContaining('Pass --if-version or --force, not both.')])
    const one = await sluice({ files: ruleFile('/mine', 2) })('rules', 'put', 'rule.yaml', '--force')
    expect(one.code).toBe(2)
  })

  it('of a resource say what they took the place of', async () => {
    await putRule('/before', 3)
    const told = await lines(['rules', 'put', 'rule.yaml'], { files: ruleFile('/Before/', 4) })
    expect(told).toEqual([
      expect.stringMatching(/^Set 1 rule for \/Before\/, enforced as version \d+\.$/),
      'Replaced:',
      expect.stringContaining('RESOURCE'),
      expect.stringMatching(/^\/Before\/ +user +3 +1h /),
    ])
  })

  it('are gone back from once by two who saw the same version', async () => {
    const { version } = await putRule('/twice', 1)
    await putRule('/twice', 2)
    const back = ['rules', 'rollback', '--if-version', String(version + 1)]
    expect(await value<Version>(back)).toMatchObject({ number: version })
    const late = await sluice()(...back)
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
    expect(late.err).toContain(`version ${version} is enforced`)
  })

  it('that cannot be used are rejected with everything that is wrong', async () => {
    const text =
      'resource: /bad\nrules:\n  - { dimension: user, limit: -1, window: 1h }\n  - { dimension: user, limt: 1 }\n'
    const outcome = await sluice({ files: { 'bad.yaml': text } })('rules', 'put', 'bad.yaml')
    expect(outcome.code).toBe(1)
    expect(outcome.err).toMatch(/^sluice: SLUICE_HTTP_INVALID_(?:REQUEST|RULE_SET): /)
    expect(outcome.err).toMatch(/^ {2}\/rules\/0\/limit: received -1; expected /m)
    const json = await sluice({ files: { 'bad.yaml': text } })('rules', 'put', 'bad.yaml', '--json')
    expect(json.out).toBe('')
    expect(json.errorJson()).toMatchObject({
      exitCode: 1,
      error: {
        code: expect.stringMatching(/^SLUICE_HTTP_INVALID_/),
        errors: expect.arrayContaining([expect.anything()]),
      },
    })
  })

  it('are not stored when they cannot be used, although something would be replaced', async () => {
    await putRule('/stored', 1)
    const before = await newest()
    const files = { 'rules.json': JSON.stringify({ rules: [{ resource: '/x', dimension: 'user', limit: -1 }] }) }
    const outcome = await sluice({ files })('rules', 'put', 'rules.json')
    expect([outcome.code, outcome.err]).toEqual([1, expect.stringContaining('/ruleSet/rules/0/limit: received -1')])
    expect(await newest()).toEqual(before)
  })

  it('are retired when another version was enforced in the same moment', async () => {
    const { version } = await putRule('/stale', 1)
    const { ruleSet } = await value<VersionContent>(['rules', 'get'])
    await putRule('/stale', 2)
    const client = createClient({ url: service.url, token: service.adminKey })
    const draft = await client.call('createVersion', { body: { ruleSet, basedOn: version } })
    await expect(moveToStage(client, draft, { stage: 'enforce' })).rejects.toMatchObject({
      code: 'SLUICE_CLI_NOT_STAGED',
      detail: expect.stringMatching(/^SLUICE_HTTP_CONFLICT: .* Version \d+ was retired; nothing else changed\.$/),
    })
    expect(await newest()).toMatchObject({ number: draft.number, stage: 'retired' })
  })

  it('are made of files of Envoy', async () => {
    const text = 'domain: shop\ndescriptors:\n  - key: ip\n    rate_limit: { unit: minute, requests_per_unit: 60 }\n'
    const other = 'domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: 6 }\n'
    const files = { '/etc/shop.yaml': text, '/etc/more.yaml': other }
    const draft = await value<Version>(['rules', 'import', '/etc/shop.yaml', '--note', 'from Envoy'], { files })
    expect(draft).toMatchObject({ stage: 'draft', note: 'from Envoy' })
    const content = await value<VersionContent>(['rules', 'get', '--at', String(draft.number)])
    expect(content.ruleSet).toMatchObject({ domains: [{ domain: 'shop' }] })
    const twice = await sluice({ files })('rules', 'import', '/etc/shop.yaml', '/etc/more.yaml')
    expect(twice.code).toBe(1)
    const merged = await lines(
      ['rules', 'import', '/etc/shop.yaml', '/etc/more.yaml', '--merge-domains', '--stage', 'shadow'],
      { files },
    )
    expect(merged).toContainEqual(expect.stringMatching(/^stage +shadow$/))
    expect(merged.at(-1)).toMatch(/^The domains shop are not enforced yet: "sluice rules stage \d+ enforce" /)
    const bad = await sluice({ files: { 'x.yaml': `${text}  - key: [1]\n` } })('rules', 'import', 'x.yaml')
    expect(bad.code).toBe(1)
    expect(bad.err).toMatch(/\(line 5\): received /)
  })

  it('of Envoy are listed, and enforced where its clients ask', async () => {
    const text =
      'domain: mail\ndescriptors:\n  - key: route\n    value: /send\n    descriptors:\n      - key: user\n        ' +
      'rate_limit: { unit: year, requests_per_unit: 2, name: sends }\n'
    const enforced = await lines(['rules', 'import', 'mail.yaml', '--stage', 'enforce'], {
      files: { 'mail.yaml': text },
    })
    expect(enforced).toContainEqual(expect.stringMatching(/^stage +enforce$/))
    expect(enforced.at(-1)).toBe('Enforced for the domains mail: check with POST /json.')
    const listed = await lines(['rules', 'list'])
    expect(listed.slice(-3)).toEqual([
      'domains, checked with POST /json',
      expect.stringMatching(/^DOMAIN +DESCRIPTOR +LIMIT +WINDOW +NAME +NOTES$/),
      expect.stringMatching(/^mail +route=\/send user +2 +year +sends +-$/),
    ])
    const { domains } = await value<{ domains: readonly unknown[] }>(['rules', 'list'])
    expect(domains).toMatchObject([{ domain: 'mail', descriptors: [{ key: 'route', value: '/send' }] }])
    const entries = [
      { key: 'route', value: '/send' },
      { key: 'user', value: 'ann' },
    ]
    const codes: unknown[] = []
    for (let call = 0; call < 3; call++) {
      const answer = await fetch(`${service.url}/json`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ domain: 'mail', descriptors: [{ entries }] }),
      })
      codes.push([answer.status, ((await answer.json()) as { readonly overallCode: string }).overallCode])
    }
    expect(codes).toEqual([
      [200, 'OK'],
      [200, 'OK'],
      [429, 'OVER_LIMIT'],
    ])
  })
})

describe('overrides', () => {
  it('are one however their resource is written, and say what they took the place of', async () => {
    const put = async (resource: string, limit: string): Promise<readonly string[]> =>
      await lines(['overrides', 'put', 'user', 'spelled', resource, '--limit', limit])
    expect(await put('/spelled', '60')).toHaveLength(3)
    expect((await put('/Spelled/', '50')).at(-1)).toMatch(/^Replaced: limit 60 \(revision \d+, by first\)\.$/)
    expect(await value<{ items: unknown[] }>(['overrides', 'get', 'user', 'spelled'])).toMatchObject({
      items: [{ entry: { resource: '/Spelled/', terms: { limit: 50 } } }],
    })
    await value(['overrides', 'delete', 'user', 'spelled', '/spelled'])
    const { items } = await value<{ items: Stored<Override>[] }>(['overrides', 'list', '--dimension', 'user'])
    expect(items.filter(({ entry }) => entry.entity === 'spelled')).toEqual([])
  })

  it('are set, shown, listed and taken back', async () => {
    const put = ['overrides', 'put', 'user', 'o1', '/over', '--limit', '500', '--window', '1m', '--burst', '5']
    const stored = await value<Stored<Override>>([...put, '--expires', '2099-01-01'])
    expect(stored.entry).toEqual({
      dimension: 'user',
      entity: 'o1',
      resource: '/over',
      terms: { limit: 500, window: '1m', burst: 5 },
      expiresAt: Date.UTC(2099, 0, 1),
    })
    await value(['overrides', 'put', 'user', 'o1', '*', '--multiplier', '2.5'])
    await value(['overrides', 'put', 'user', 'o2', '/over', '--limit', 'off', '--if-revision', '0'])
    const { items } = await value<{ items: Stored<Override>[] }>(['overrides', 'get', 'user', 'o1'])
    expect(items.map(({ entry }) => entry.resource).toSorted()).toEqual(['*', '/over'])
    expect(await lines(['overrides', 'get', 'user', 'o1', '/over'])).toEqual([
      expect.stringMatching(/^DIMENSION +ENTITY /),
      expect.stringMatching(/^user +o1 +\/over +limit 500 per 1m burst 5 +2099-01-01T00:00:00Z +\d+ +first$/),
    ])
    const all = await value<{ items: Stored<Override>[] }>(['overrides', 'list', '--dimension', 'user'])
    expect(all.items.map(({ entry }) => entry.entity)).toEqual(expect.arrayContaining(['o1', 'o2']))
    expect(await value<{ items: [] }>(['overrides', 'list', '--dimension', 'tenant'])).toEqual({ items: [] })
    const taken = await sluice()('overrides', 'put', 'user', 'o2', '/over', '--limit', '1', '--if-revision', '0')
    expect([taken.code, taken.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
    const late = await sluice()('overrides', 'delete', 'user', 'o1', '/over', '--if-revision', '1')
    expect([late.code, late.err]).toEqual([1, expect.stringContaining('SLUICE_HTTP_PRECONDITION_FAILED')])
    expect(await value(['overrides', 'delete', 'user', 'o1', '/over'])).toEqual({
      deleted: { dimension: 'user', entity: 'o1', resource: '/over' },
    })
    const missing = await sluice()('overrides', 'get', 'user', 'o1', '/over')
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('SLUICE_CLI_NOT_FOUND')])
  })

  it('are imported from a file', async () => {
    const list = Array.from({ length: 1500 }, (_, index) => ({
      dimension: 'tenant',
      entity: `t${index}`,
      resource: '*',
      terms: { multiplier: 2 },
    }))
    const files = { 'list.json': JSON.stringify(list), 'bad.json': JSON.stringify([{ ...list[0], terms: {} }]) }
    const outcome = await value(['overrides', 'import', 'list.json', '--note', 'contracts'], { files })
    expect(outcome).toEqual({ count: 1500 })
    const { items } = await value<{ items: unknown[] }>(['overrides', 'list', '--dimension', 'tenant'])
    expect(items).toHaveLength(1500)
    const bad = await sluice({ files })('overrides', 'import', 'bad.json')
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining('/overrides/0/terms: received')])
  })
})

describe('blocks', () => {
  it('are set, listed and lifted', async () => {
    const put = ['blocks', 'put', 'ip', '192.0.2.7', '1h30m', '--reason', 'abuse report 4711']
    expect(await value(put)).toMatchObject({ entry: { entity: '192.0.2.7', reason: 'abuse report 4711' } })
    const denied = await sluice()('check', '/anything', '--ip', '192.0.2.7', '--json')
    expect([denied.code, denied.json<CheckAnswer>().reason]).toEqual([3, 'blocked'])
    expect(await lines(['blocks', 'list', '--dimension', 'ip'])).toContainEqual(
      expect.stringMatching(/^ip +192\.0\.2\.7 .* abuse report 4711$/),
    )
    expect(await value(['blocks', 'lift', 'ip', '192.0.2.7'])).toEqual({
      lifted: { dimension: 'ip', entity: '192.0.2.7' },
    })
    expect((await sluice()('check', '/anything', '--ip', '192.0.2.7')).code).toBe(0)
    expect(await value(['blocks', 'list'])).toEqual({ items: [] })
  })
})

describe('keys', () => {
  it('are made, used, replaced and ended', async () => {
    const make = [
      'keys',
      'create',
      'deploy',
      '--role',
      'viewer',
      '--tenant',
      'acme',
      '--tier',
      'gold',
      '--expires',
      '90d',
    ]
    const { apiKey, token } = await value<IssuedApiKey>(make)
    expect(apiKey).toMatchObject({ name: 'deploy', role: 'viewer', tenant: 'acme', tier: 'gold' })
    const as = (key: string) => cliRunner({ env: { SLUICE_URL: service.url, SLUICE_API_KEY: key } })
    expect((await as(token)('overrides', 'list')).code).toBe(0)
    const forbidden = await as(token)('keys', 'list')
    expect([forbidden.code, forbidden.err]).toEqual([5, expect.stringContaining('SLUICE_HTTP_FORBIDDEN')])
    const next = await value<IssuedApiKey>(['keys', 'rotate', apiKey.id, '--overlap', '1h'])
    expect(next.apiKey.rotatedFrom).toBe(apiKey.id)
    expect((await as(token)('overrides', 'list')).code).toBe(0)
    // Who gives the whole key gives it no further.
    expect(await value(['keys', 'revoke', next.token])).toEqual({ revoked: { id: next.apiKey.id } })
    const ended = await as(next.token)('overrides', 'list')
    expect([ended.code, ended.err]).toEqual([5, expect.stringContaining('SLUICE_HTTP_UNAUTHORIZED')])
    expect(ended.err + ended.out).not.toContain(next.token)
    const { items } = await value<{ items: ApiKey[] }>(['keys', 'list'])
    expect(items.map(({ name }) => name)).toEqual(expect.arrayContaining(['first', 'deploy']))
    const told = await lines(['keys', 'create', 'reader', '--role', 'viewer'])
    expect(told.at(-1)).toMatch(/^ {2}slk_\w+_\w+$/)
    expect(await lines(['keys', 'list'])).toContainEqual(expect.stringMatching(/^slk_\w+ +reader +viewer +- +- /))
  })
})

describe('id', () => {
  it('makes ids and takes them apart', async () => {
    const { ids } = await value<{ ids: string[] }>(['id', 'new', '--count', '3'])
    expect(ids).toHaveLength(3)
    expect(await lines(['id', 'new'])).toEqual([expect.stringMatching(/^\d{15,19}$/)])
    const decoded = await value<{ ids: { id: string; timestampMs: number; madeAt: string }[] }>([
      'id',
      'decode',
      ...ids,
    ])
    expect(decoded.ids.map(({ id }) => id)).toEqual(ids)
    expect(decoded.ids.every(({ timestampMs, madeAt }) => Date.parse(madeAt) === timestampMs)).toBe(true)
    expect(await lines(['id', 'decode', '0'])).toEqual([
      'ID  CREATED                   DATACENTER  MACHINE  SEQUENCE',
      '0   2010-11-04T00:00:00.000Z  0           0        0',
    ])
  })
})

describe('top', () => {
  it('prints a line for each sample without a terminal', async () => {
    expect(await lines(['top', '--count', '2'])).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}checks \S+\/s {2}denied /),
      expect.stringMatching(/ {2}version \d+ {2}alerts \d+$/),
    ])
    const outcome = await sluice()('top', '--count', '1', '--json')
    expect(outcome.json<LiveSample>()).toMatchObject({ checks: expect.any(Number), version: expect.any(Number) })
  })

  it('draws on a screen of its own, and gives the old one back', async () => {
    const outcome = await sluice({ isTty: true, columns: 60, rows: 10 })('top', '--count', '1')
    expect(outcome.code).toBe(0)
    expect(outcome.out.startsWith('\u001B[?1049h')).toBe(true)
    expect(outcome.out.endsWith('\u001B[?1049l')).toBe(true)
    expect(outcome.out).toContain(`Sluice at ${service.url}`)
    expect(outcome.out).toContain('RESOURCE')
  })

  it('ends well when it is interrupted', async () => {
    const interrupted = new AbortController()
    interrupted.abort()
    expect(await sluice({ signal: interrupted.signal })('top')).toMatchObject({ code: 0, err: '' })
  })
})

describe('a command without a good key', () => {
  it('ends with 5 and says what to do', async () => {
    const none = await cliRunner({ env: { SLUICE_URL: service.url } })('rules', 'list')
    expect(none).toMatchObject({ code: 5, out: '' })
    expect(none.err).toMatch(/^sluice: SLUICE_HTTP_UNAUTHORIZED: .* Set the key in SLUICE_API_KEY or --key\.\n$/)
    const wrong = 'slk_4f9d1c_notavalidsecret'
    const outcome = await cliRunner({ env: { SLUICE_URL: service.url } })('rules', 'list', '--key', wrong, '--json')
    expect(outcome.code).toBe(5)
    expect(outcome.errorJson()).toMatchObject({ exitCode: 5, error: { code: 'SLUICE_HTTP_UNAUTHORIZED', status: 401 } })
    expect(outcome.err).not.toContain(wrong)
  })

  it('takes the flag before the environment', async () => {
    const env = { SLUICE_URL: 'http://127.0.0.1:1', SLUICE_API_KEY: 'slk_4f9d1c_wrong' }
    const outcome = await cliRunner({ env })('rules', 'list', '--url', service.url, '--key', service.adminKey)
    expect(outcome.code).toBe(0)
  })
})

// Last, because the dimension of its rule is not declared, which "top" would show.
it('usage and reset take descriptors', async () => {
  const files = { 'models.yaml': 'resource: /models\nrules:\n  - { dimension: model, limit: 5, window: 1h }\n' }
  await value(['rules', 'put', 'models.yaml'], { files })
  await value(['check', '/models', '--descriptor', 'model=large', '--tokens', '2'])
  const large = ['/models', '--descriptor', 'model=large']
  const used = async (): Promise<unknown> =>
    (await value<UsageAnswer>(['usage', ...large])).usage.map(({ entity, counters }) => [entity, counters[0]?.used])
  expect(await used()).toEqual([['large', 2]])
  expect(await value(['reset', ...large])).toEqual({ reset: true, count: 1 })
  expect(await used()).toEqual([['large', 0]])
})
