import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RuleSetError } from '@sluice/core/policy'
import { FakeClock, FakeTimers, seededRandom } from '@sluice/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigEvent } from '../follow/config-follower.ts'
import { RecordingTarget } from '../follow/fake-feed.test.support.ts'
import { temporaryFolder, until } from '../waiting.test.support.ts'
import { type FileConfig, type FileConfigOptions, fileConfig } from './file-config.ts'

const withLimit = (limit: number): string =>
  `rules:\n  - { name: orders, resource: /orders, dimension: user, limit: ${limit}, window: 1m }\n`

async function scene(name = 'sluice.yaml') {
  const folder = await temporaryFolder()
  const path = join(folder, name)
  const target = new RecordingTarget()
  const events: ConfigEvent[] = []
  const follow = (options: Partial<FileConfigOptions> = {}, at = path): FileConfig => {
    const observe = (event: ConfigEvent): void => void events.push(event)
    const config = fileConfig(at, { target, observe, settleMs: 20, ...options })
    onTestFinished(() => config.close())
    return config
  }
  const limit = (): number | undefined => {
    const [rule] = target.versions.enforced?.ruleSet.rules ?? []
    return (rule as { limit: number } | undefined)?.limit
  }
  /** Puts another file in the place of the one that is there, as editors do. */
  const replace = async (text: string): Promise<void> => {
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  return { folder, path, target, events, follow, limit, replace }
}

it('keeps a program going that has nothing to do but await a change', async () => {
  const { folder, path } = await scene()
  await writeFile(path, withLimit(5))
  const program = `
    import { writeFileSync } from 'node:fs'
    import { fileConfig } from ${JSON.stringify(new URL('./file-config.ts', import.meta.url).href)}
    const limits = []
    const target = new Proxy({}, { get: () => (versions) => limits.push(versions?.enforced?.ruleSet.rules[0].limit) })
    const config = fileConfig(${JSON.stringify(path)}, { target })
    await config.ready()
    writeFileSync(${JSON.stringify(path)}, ${JSON.stringify(withLimit(9))})
    await config.refresh()
    await config.close()
    console.log(limits.filter((limit) => limit !== undefined).join(' '))`
  const flags = ['--conditions=source', '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program], { cwd: folder })
  expect(stdout.trim()).toBe('5 9')
})

/** Slow polling: a change that is noticed soon was reported by the file system. */
const BY_HINT = { pollMs: 600_000 }

describe('the settings of the service in a file', () => {
  it('are reported as they are written, with every content whose rules have no problems', async () => {
    const { path, follow, limit, replace } = await scene()
    const told: unknown[] = []
    const first = `service: { port: 1 }\n${withLimit(5)}`
    await writeFile(path, first)
    const config = follow({ ...BY_HINT, onService: (service) => void told.push(service) })
    await config.ready()
    await replace(`service: { prot: 2 }\n${withLimit(6)}`)
    await config.refresh()
    await replace(`service: { port: 3 }\n${withLimit(-1)}`)
    await expect(config.refresh()).rejects.toThrow('SLUICE_INVALID_RULE_SET')
    await replace(withLimit(7))
    await config.refresh()
    expect([told, limit()]).toEqual([[{ port: 1 }, { prot: 2 }, undefined], 7])
  })

  it('are reported again when a content comes back, and a failing callback stops nothing', async () => {
    const { path, follow, limit, replace, target } = await scene()
    const told: unknown[] = []
    const onService = (service: unknown): never => {
      told.push(service)
      throw new Error('not now')
    }
    const first = `service: { port: 1 }\n${withLimit(5)}`
    await writeFile(path, first)
    const config = follow({ ...BY_HINT, onService })
    await config.ready()
    target.unusable.add(2)
    await replace(`service: { port: 2 }\n${withLimit(6)}`)
    await expect(config.refresh()).rejects.toThrow()
    await replace(first)
    await config.refresh()
    expect([told, limit()]).toEqual([[{ port: 1 }, { port: 2 }, { port: 1 }], 5])
  })
})

describe('the parts of a file for a gateway', () => {
  const withRoute = (name: string, limit: number): string =>
    `routes: [{ name: ${name} }]\ngateway:\n  accessLog: json\n${withLimit(limit)}`

  const rejectBad: NonNullable<FileConfigOptions['checkGateway']> = ({ routes }) =>
    JSON.stringify(routes).includes('bad')
      ? [{ path: '/routes/0/name', received: '"bad"', expected: 'another name' }]
      : []

  it('are passed on when the file has taken effect, and again when its content comes back', async () => {
    const { path, follow, limit, replace } = await scene()
    const told: unknown[] = []
    await writeFile(path, withRoute('one', 5))
    const rules: unknown[] = []
    const onGateway: FileConfigOptions['onGateway'] = (parts, ruleSet) => {
      told.push(parts)
      rules.push((ruleSet.rules[0] as { readonly limit: number }).limit)
    }
    const config = follow({ ...BY_HINT, checkGateway: rejectBad, onGateway })
    await config.ready()
    await replace(withLimit(6))
    await config.refresh()
    await replace(withRoute('two', 7))
    await config.refresh()
    expect([told, rules, limit()]).toEqual([
      [
        { routes: [{ name: 'one' }], gateway: { accessLog: 'json' } },
        undefined,
        { routes: [{ name: 'two' }], gateway: { accessLog: 'json' } },
      ],
      [5, 6, 7],
      7,
    ])
  })

  it('are rejected with the rules, at their line, and nothing of the file takes effect', async () => {
    const { path, follow, limit, replace } = await scene()
    const told: unknown[] = []
    await writeFile(path, withRoute('one', 5))
    const config = follow({ ...BY_HINT, checkGateway: rejectBad, onGateway: (parts) => void told.push(parts) })
    await config.ready()
    await replace(`\n${withRoute('bad', -1)}`)
    const problems = await config.refresh().catch((error: RuleSetError) => error.problems)
    expect(problems).toMatchObject([{ path: '/rules/0/limit' }, { path: '/routes/0/name', line: 2 }])
    await replace(withRoute('bad', 9))
    await expect(config.refresh()).rejects.toThrow('/routes/0/name (line 1) is "bad", expected another name')
    expect([told.length, limit()]).toEqual([1, 5])
  })

  it('are not looked at where they have another type, and a failing callback stops nothing', async () => {
    const { path, follow, limit, replace } = await scene()
    await writeFile(path, withRoute('one', 5))
    const onGateway = (): never => {
      throw new Error('not now')
    }
    const config = follow({ ...BY_HINT, checkGateway: rejectBad, onGateway })
    await config.ready()
    await replace(`routes: bad\n${withLimit(6)}`)
    await expect(config.refresh()).rejects.toThrow('/routes (line 1) is "bad", expected a list')
    expect(limit()).toBe(5)
  })
})

describe('a file', () => {
  it('is in force when ready() resolves', async () => {
    const { path, target, follow } = await scene()
    await writeFile(
      path,
      `${withLimit(5)}overrides:\n  - { dimension: user, entity: u1, resource: '*', terms: { limit: 7 } }\n`,
    )
    const config = follow()
    await config.ready()
    expect(target.versions.enforced).toMatchObject({ number: 1, stage: 'enforce', createdBy: 'sluice.yaml' })
    const key = { dimension: 'user', entity: 'u1', resource: '*' }
    expect(target.content()).toEqual([{ kind: 'override', key, entry: { ...key, terms: { limit: 7 } } }])
    expect(config.stats()).toMatchObject({
      source: 'file',
      enforcedVersion: 1,
      candidateVersion: undefined,
      refused: [],
      contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      failures: 0,
      lagMs: 0,
    })
  })

  it('may be JSON', async () => {
    const { path, follow, limit } = await scene('sluice.json')
    await writeFile(path, '{"rules":[{"resource":"/orders","dimension":"user","limit":3,"window":"1m"}]}')
    await follow().ready()
    expect(limit()).toBe(3)
  })

  it('that has problems at the start is reported by ready() at once, with file name, path and line', async () => {
    const { path, target, follow } = await scene()
    await writeFile(path, withLimit(-5))
    const config = follow()
    await expect(config.ready()).rejects.toMatchObject({
      code: 'SLUICE_INVALID_RULE_SET',
      message: expect.stringContaining('sluice.yaml'),
      problems: [{ path: '/rules/0/limit', line: 2 }],
    })
    expect(target.log).toEqual([])
    expect(config.stats()).toMatchObject({
      source: 'none',
      refused: [{ number: 1, stage: 'enforced', problems: [{ line: 2 }] }],
      contentHash: undefined,
    })
  })

  it('that is not there is reported by ready() at once, and taken when it comes', async () => {
    const { path, events, follow, limit } = await scene()
    const config = follow(BY_HINT)
    await expect(config.ready()).rejects.toMatchObject({
      code: 'SLUICE_NOT_FOUND',
      message: expect.stringContaining(path),
    })
    await writeFile(path, withLimit(5))
    await until('it is in force', () => limit() === 5)
    await config.ready()
    expect(events.map(({ type }) => type)).toEqual(['unavailable', 'recovered', 'refreshed'])
  })

  it('that is a folder is reported', async () => {
    const { path, follow } = await scene()
    await mkdir(path)
    await expect(follow().ready()).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
  })
})

describe('a change of the file', () => {
  it('takes effect by itself when it is written in place', async () => {
    const { path, follow, limit } = await scene()
    await writeFile(path, withLimit(5))
    const config = follow(BY_HINT)
    await config.ready()
    const { contentHash } = config.stats()
    await writeFile(path, withLimit(6))
    await until('it is in force', () => limit() === 6)
    expect(config.stats()).toMatchObject({ enforcedVersion: 2, position: 2 })
    expect(config.stats().notifications).toBeGreaterThan(0)
    expect(config.stats().contentHash).not.toBe(contentHash)
  })

  it('takes effect when another file is put in its place, again and again', async () => {
    const { path, follow, limit, replace } = await scene()
    await writeFile(path, withLimit(1))
    await follow(BY_HINT).ready()
    for (const next of [2, 3, 4]) {
      await replace(withLimit(next))
      await until(`limit ${next} is in force`, () => limit() === next)
    }
  })

  it('takes effect when it is deleted and written again', async () => {
    const { path, follow, limit, events } = await scene()
    await writeFile(path, withLimit(1))
    const config = follow(BY_HINT)
    await config.ready()
    await rm(path)
    await until('it is missed', () => config.stats().failures > 0)
    expect(limit()).toBe(1)
    await writeFile(path, withLimit(2))
    await until('it is in force', () => limit() === 2)
    expect(events.map(({ type }) => type)).toEqual(['refreshed', 'unavailable', 'recovered', 'refreshed'])
  })

  it('takes effect when the link to its folder is turned, as Kubernetes does with a ConfigMap', async () => {
    const { folder, path, follow, limit } = await scene()
    const publish = async (name: string, limit_: number): Promise<void> => {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'sluice.yaml'), withLimit(limit_))
      await symlink(name, join(folder, '..data_tmp'))
      await rename(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    await publish('..2026_01', 1)
    await symlink(join('..data', 'sluice.yaml'), path)
    await follow(BY_HINT).ready()
    await publish('..2026_02', 2)
    await until('the second is in force', () => limit() === 2)
    await publish('..2026_03', 3)
    await until('the third is in force', () => limit() === 3)
  })

  it('takes effect when the folder itself is another one, by polling, and is watched there from then on', async () => {
    const { folder, follow, limit } = await scene()
    const release = async (name: string, limit_: number): Promise<void> => {
      await mkdir(join(folder, name))
      await writeFile(join(folder, name, 'sluice.yaml'), withLimit(limit_))
      await rm(join(folder, 'current'), { force: true })
      await symlink(name, join(folder, 'current'))
    }
    await release('one', 1)
    const config = follow({ pollMs: 50 }, join(folder, 'current', 'sluice.yaml'))
    await config.ready()
    await release('two', 2)
    await until('the second is in force', () => limit() === 2)
    await until('nothing more is reported', async () => {
      const { notifications, polls } = config.stats()
      await until('polls go on', () => config.stats().polls > polls + 2)
      return config.stats().notifications === notifications
    })
    const { notifications } = config.stats()
    await writeFile(join(folder, 'two', 'sluice.yaml'), withLimit(3))
    await until('the third is in force', () => limit() === 3)
    expect(config.stats().notifications).toBeGreaterThan(notifications)
  })

  it('changes overrides and memberships that are other ones, and no others', async () => {
    const { path, follow, target } = await scene()
    const entries = (...lines: readonly string[]): string =>
      `${withLimit(5)}tiers: [{ name: gold }]\n${lines.join('\n')}\n`
    const override = (entity: string, limit: number): string =>
      `  - { dimension: user, entity: ${entity}, resource: '*', terms: { limit: ${limit} } }`
    const member = '  - { dimension: user, entity: m, tier: gold }'
    await writeFile(
      path,
      entries('overrides:', override('a', 1), override('b', 2), override('c', 3), 'members:', member),
    )
    const config = follow(BY_HINT)
    await config.ready()
    target.log.length = 0
    await writeFile(path, entries('overrides:', override('c', 3), override('b', 20), override('d', 4)))
    await until('it is in force', () => config.stats().enforcedVersion === 2)
    // b and d are put, a and m are removed, c stays.
    expect(target.log).toEqual(['use 2/-', 'apply 4'])
    expect(target.content().map(({ entry }) => (entry as { entity: string }).entity)).toEqual(['b', 'c', 'd'])
  })
})

describe('a bad change of the file', () => {
  it('leaves in force what was, is reported with its lines, and is forgotten when it is mended', async () => {
    const { path, follow, limit, replace, events, target } = await scene()
    await writeFile(path, withLimit(5))
    const config = follow(BY_HINT)
    await config.ready()
    const good = config.stats().contentHash
    await replace(`${withLimit(6)}tires: []\n`)
    await until('it is refused', () => config.stats().refused.length > 0)
    expect(limit()).toBe(5)
    expect(config.stats()).toMatchObject({
      source: 'file',
      enforcedVersion: 1,
      contentHash: good,
      failures: 0,
      refused: [{ number: 2, stage: 'enforced', problems: [{ path: '/tires', line: 3 }] }],
    })
    expect(events.find(({ type }) => type === 'refused')).toMatchObject({ error: { code: 'SLUICE_INVALID_RULE_SET' } })
    await expect(config.refresh()).rejects.toMatchObject({ code: 'SLUICE_INVALID_RULE_SET' })
    await config.ready()
    // However often it is read, it is reported once.
    expect(events.filter(({ type }) => type === 'refused')).toHaveLength(1)
    await replace(withLimit(7))
    await until('it is mended', () => limit() === 7)
    expect(config.stats()).toMatchObject({ enforcedVersion: 2, refused: [] })
    expect(target.log).toEqual(['use 1/-', 'use 2/-'])
  })

  it('is forgotten when what was in force is put back, without another version', async () => {
    const { path, follow, replace, target } = await scene()
    await writeFile(path, withLimit(5))
    const config = follow(BY_HINT)
    await config.ready()
    await replace('rules: [')
    await until('it is refused', () => config.stats().refused.length > 0)
    await replace(withLimit(5))
    await until('it is mended', () => config.stats().refused.length === 0)
    expect(config.stats().enforcedVersion).toBe(1)
    expect(target.log).toEqual(['use 1/-'])
    await config.refresh()
  })

  it('that only the target cannot use is rejected as well, with its entries', async () => {
    const { path, follow, replace, target } = await scene()
    await writeFile(path, withLimit(5))
    target.unusable.add(2)
    const config = follow(BY_HINT)
    await config.ready()
    await replace(
      `${withLimit(6)}overrides:\n  - { dimension: user, entity: u1, resource: '*', terms: { limit: 7 } }\n`,
    )
    await until('it is refused', () => config.stats().refused.length > 0)
    expect(config.stats()).toMatchObject({ enforcedVersion: 1, refused: [{ reason: 'version 2 is beyond me' }] })
    expect(target.content()).toEqual([])
  })
})

describe('a file that is being written', () => {
  it('is not read before it has stayed as it is for a moment: half of it may be a good file', async () => {
    const { path, target } = await scene()
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    await writeFile(path, withLimit(1))
    const config = fileConfig(path, { target, clock, timers, random: seededRandom(1), settleMs: 100 })
    onTestFinished(() => config.close())
    await config.ready()
    const half = withLimit(2)
    await writeFile(path, half)
    /** Timers go on as long as the file system has told nothing new. */
    const idle = async (): Promise<void> => {
      await timers.advance(0)
      await until('the look waits', async () => {
        await timers.advance(0)
        return timers.pending > 0
      })
    }
    await until('the change is noticed', async () => {
      await timers.advance(50)
      return config.stats().notifications > 0
    })
    for (let part = 0; part < 5; part++) {
      await writeFile(path, `${half}# ${'x'.repeat(part)}\n`)
      await idle()
      await timers.advance(99)
      expect(target.versions.enforced?.number).toBe(1)
    }
    const whole = `${half}  - { name: more, resource: /more, dimension: user, limit: 1, window: 1s }\n`
    await writeFile(path, whole)
    await until('it is in force', async () => {
      await timers.advance(100)
      return (target.versions.enforced?.ruleSet.rules.length ?? 0) === 2
    })
    expect(target.versions.enforced?.number).toBe(2)
  })
})

describe('polling', () => {
  it('finds a change that the file platform does not tell of, such as behind a link', async () => {
    const { folder, path, follow, limit } = await scene()
    const elsewhere = join(folder, 'elsewhere')
    await mkdir(elsewhere)
    await writeFile(join(elsewhere, 'actual.yaml'), withLimit(1))
    await symlink(join('elsewhere', 'actual.yaml'), path)
    const config = follow({ pollMs: 20 })
    await config.ready()
    await until('it is watched', () => config.stats().polls > 2)
    const { notifications } = config.stats()
    await writeFile(join(elsewhere, 'actual.yaml'), withLimit(2))
    await until('it is in force', () => limit() === 2)
    expect(config.stats().notifications).toBe(notifications)
  })

  it('does not make another version of a file that was only touched', async () => {
    const { path, follow, target } = await scene()
    await writeFile(path, withLimit(1))
    const config = follow({ pollMs: 20 })
    await config.ready()
    const { mtimeMs } = await stat(path)
    await utimes(path, mtimeMs / 1000 + 10, mtimeMs / 1000 + 10)
    await until('it was looked at', () => config.stats().polls > 3 && config.stats().notifications > 0)
    await writeFile(path, await readFile(path))
    await config.refresh()
    expect(target.log).toEqual(['use 1/-'])
  })

  it.each([0, -1, Number.NaN])('in an interval of %s is rejected', async (pollMs) => {
    const { follow } = await scene()
    expect(() => follow({ pollMs })).toThrow('SLUICE_INVALID_OPTION')
  })
})

describe('close()', () => {
  it('leaves no timer, and takes nothing more', async () => {
    const { path, target, replace } = await scene()
    const timers = new FakeTimers(new FakeClock())
    await writeFile(path, withLimit(1))
    const config = fileConfig(path, { target, timers })
    await config.ready()
    await replace(withLimit(2))
    await until('it waits for the file to settle', async () => {
      await timers.advance(0)
      return config.stats().notifications > 0 && timers.pending === 1
    })
    await timers.advance(50)
    await config.close()
    await config.close()
    expect(timers.pending).toBe(0)
    await expect(config.refresh()).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    expect(target.log).toEqual(['use 1/-'])
  })
})
