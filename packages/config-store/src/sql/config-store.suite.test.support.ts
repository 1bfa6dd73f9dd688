import { createHash } from 'node:crypto'
import type { Block, Membership, Override, RuleSet } from '@sluice/core/policy'
import { HOSTILE_KEYS } from '@sluice/testing'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Author, EntityKey, EntryTable, OverrideKey, Page, PageRequest } from '../config-entries.ts'
import type { ConfigStore } from '../config-store.ts'
import type { ConfigStoreOptions } from '../open-config-store.ts'
import type { Version, VersionApproval, VersionTable } from '../rule-set-versions.ts'
import { until } from '../waiting.test.support.ts'
import { describeSpellings } from './canonical-keys.suite.test.support.ts'
import { FeedReader } from './feed-reader.test.support.ts'
import { describeSharedValues } from './shared-values.suite.test.support.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const ALICE = { name: 'alice', note: 'because' }
const BOB = { name: 'bob' }

/** An empty database, for one test. */
export interface TestDatabase {
  /** Opens it, as one more user of it; closed when the test ends. */
  open(options?: ConfigStoreOptions): Promise<ConfigStore>
}

/** What the suite runs on. */
export interface ConfigStoreSubject {
  create(): Promise<TestDatabase>
  /** Whether a database can be opened more than once. */
  readonly isShared: boolean
}

const RULE_SET: RuleSet = {
  rules: [
    { resource: '/orders', dimension: 'user', limit: 10, window: '1m' },
    { name: 'all', resource: '*', dimension: 'ip', algorithm: 'token-bucket', capacity: 5, refillPerSecond: 1 },
    { resource: '/orders/:id', methods: ['GET'], dimension: 'tenant+user', limit: 'off', window: '1h', shadow: true },
  ],
  tiers: [{ name: 'premium', multiplier: 10, burst: 5 }, { name: 'free' }],
  exemptions: [{ name: 'health', match: { resource: '/health' } }],
  denyList: [{ name: 'bad', match: { dimension: 'user', entities: ['\0', '\ud83d', '\\'] } }],
  regions: { US: 2 },
  incident: 0.5,
  domains: [{ domain: 'edge', descriptors: [{ key: 'a', value: 'é', limit: { unit: 'minute', requestsPerUnit: 3 } }] }],
}

/** The longest keys there are, which cannot be made shorter, and differ only at their end. */
const LONGEST_KEYS = ['a', 'b'].map((end) => {
  const lines = Array.from({ length: 70 }, (_, line) => createHash('sha256').update(String(line)).digest('hex'))
  return `${lines.join('').slice(0, 4095)}${end}`
})

const KEYS = [...HOSTILE_KEYS, ...LONGEST_KEYS]

/** With another limit, to tell rule sets apart. */
function ruleSetOf(limit: number): RuleSet {
  return { rules: [{ resource: '/orders', dimension: 'user', limit, window: '1m' }] }
}

function override(entity: string, limit: number, resource = '/orders'): Override {
  return { dimension: 'user', entity, resource, terms: { limit } }
}

function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no error',
    (error: { code: string }) => error.code,
  )
}

async function itemsOf<T>(list: (page: PageRequest) => Promise<Page<T>>, limit = 1000): Promise<readonly T[]> {
  const items: T[] = []
  for (let page: PageRequest = { limit }; ; ) {
    const { items: some, next } = await list(page)
    items.push(...some)
    if (next === undefined) return items
    page = { limit, after: next }
  }
}

/** A draft by an author who knows what is enforced now. */
async function draftOf(versions: VersionTable, ruleSet: RuleSet, author: Author): Promise<Version> {
  return await versions.create(ruleSet, author, (await versions.current()).enforced?.number ?? 0)
}

async function actionsOf(store: ConfigStore): Promise<readonly string[]> {
  const records = await itemsOf((page) => store.audit.list(page))
  return records.map(({ action, target }) => `${action} ${target}`).reverse()
}

/** The whole behaviour of a configuration store, on whatever it is kept in. */
export function describeConfigStore(name: string, subject: ConfigStoreSubject): void {
  describe(`${name}:`, () => {
    let nowMs: number
    let database: TestDatabase
    let store: ConfigStore

    beforeEach(async () => {
      nowMs = 1_700_000_000_000
      database = await subject.create()
      store = await database.open({ nowMs: () => nowMs })
    })

    describe('versions', () => {
      it('keep a rule set exactly as it was given', async () => {
        const { number } = await draftOf(store.versions, RULE_SET, ALICE)
        expect(await store.versions.get(number)).toStrictEqual({
          number: 1,
          stage: 'draft',
          percent: 0,
          basedOn: undefined,
          createdAt: nowMs,
          createdBy: 'alice',
          enforcedAt: undefined,
          note: 'because',
          revision: 2,
          ruleSet: RULE_SET,
        })
        const bare = await draftOf(store.versions, { rules: [], tiers: [] }, BOB)
        expect((await store.versions.get(bare.number))?.ruleSet).toStrictEqual({ rules: [], tiers: [] })
        expect(await store.versions.get(99)).toBeUndefined()
      })

      it('are listed from the newest on, page by page', async () => {
        for (let limit = 1; limit <= 5; limit++) await draftOf(store.versions, ruleSetOf(limit), ALICE)
        const versions = await itemsOf((page) => store.versions.list(page), 2)
        expect(versions.map(({ number }) => number)).toEqual([5, 4, 3, 2, 1])
        expect((await store.versions.list()).items).toHaveLength(5)
      })

      it('go from draft over shadow and percent to enforce, and retire the one before', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        const draft = await draftOf(store.versions, ruleSetOf(2), ALICE)
        expect(draft).toMatchObject({ number: 2, stage: 'draft', basedOn: 1 })
        expect((await store.versions.current()).candidate).toBeUndefined()

        const shadow = await store.versions.stage(2, { stage: 'shadow', ifRevision: draft.revision }, ALICE)
        expect(await store.versions.current()).toMatchObject({ enforced: { number: 1 }, candidate: shadow })
        const percent = await store.versions.stage(2, { stage: 'percent', percent: 12.5 }, BOB)
        expect(percent).toMatchObject({ stage: 'percent', percent: 12.5 })
        const enforced = await store.versions.stage(2, { stage: 'enforce' }, ALICE)
        expect(enforced).toMatchObject({ stage: 'enforce', percent: 0 })
        expect(await store.versions.current()).toEqual({ enforced, candidate: undefined })
        expect(await store.versions.get(1)).toMatchObject({ stage: 'retired', enforcedAt: nowMs })
        expect([draft, shadow, percent, enforced].map(({ enforcedAt }) => enforcedAt)).toEqual([
          undefined,
          undefined,
          undefined,
          nowMs,
        ])
        const revisions = [draft, shadow, percent, enforced].map(({ revision }) => revision)
        expect(new Set(revisions).size).toBe(4)
      })

      it('are moved only by who has seen where they stand', async () => {
        const draft = await draftOf(store.versions, ruleSetOf(1), ALICE)
        await store.versions.stage(1, { stage: 'shadow' }, BOB)
        const late = store.versions.stage(1, { stage: 'enforce', ifRevision: draft.revision }, ALICE)
        await expect(late).rejects.toMatchObject({ code: 'SLUICE_CONFLICT', received: draft.revision })
        expect((await store.versions.current()).candidate).toMatchObject({ number: 1, stage: 'shadow' })
      })

      it('are not enforced over one that their author has not seen', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        await draftOf(store.versions, ruleSetOf(3), BOB)
        await store.versions.stage(3, { stage: 'enforce' }, BOB)
        const late = store.versions.stage(2, { stage: 'enforce' }, ALICE)
        await expect(late).rejects.toThrow('version 2 was based on version 1, and version 3 is enforced by now')
        expect(await codeOf(late)).toBe('SLUICE_CONFLICT')
        // Who knows can still say so.
        await store.versions.create(ruleSetOf(4), ALICE, 3)
        expect(await store.versions.stage(4, { stage: 'enforce' }, ALICE)).toMatchObject({
          number: 4,
          stage: 'enforce',
        })
      })

      it('have one candidate at most, and leave the enforced one in force', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        await draftOf(store.versions, ruleSetOf(3), ALICE)
        await store.versions.stage(2, { stage: 'shadow' }, ALICE)
        expect(await codeOf(store.versions.stage(3, { stage: 'percent', percent: 5 }, ALICE))).toBe('SLUICE_CONFLICT')
        expect(await codeOf(store.versions.stage(1, { stage: 'retired' }, ALICE))).toBe('SLUICE_CONFLICT')
        expect(await codeOf(store.versions.stage(1, { stage: 'shadow' }, ALICE))).toBe('SLUICE_CONFLICT')
        await store.versions.stage(2, { stage: 'retired' }, ALICE)
        await store.versions.stage(3, { stage: 'percent', percent: 5 }, ALICE)
        expect(await store.versions.current()).toMatchObject({ enforced: { number: 1 }, candidate: { number: 3 } })
      })

      it('reject what makes no sense', async () => {
        await draftOf(store.versions, ruleSetOf(1), ALICE)
        const wrong = [
          store.versions.stage(1, { stage: 'percent', percent: 101 }, ALICE),
          store.versions.stage(1, { stage: 'percent', percent: Number.NaN }, ALICE),
          store.versions.stage(1, { stage: 'draft' as 'shadow' }, ALICE),
          store.versions.stage(1, { stage: 'shadow', ifRevision: -1 }, ALICE),
          draftOf(store.versions, ruleSetOf(1), { name: '' }),
          draftOf(store.versions, ruleSetOf(1), { name: 'a'.repeat(201) }),
          store.versions.list({ limit: 0 }),
          store.versions.list({ limit: 1001 }),
          store.versions.list({ after: 'nonsense' }),
        ]
        expect(await Promise.all(wrong.map(codeOf))).toEqual(wrong.map(() => 'SLUICE_INVALID_OPTION'))
        const missing = [
          store.versions.stage(7, { stage: 'shadow' }, ALICE),
          store.versions.create(ruleSetOf(1), ALICE, 7),
          store.versions.rollback(ALICE, { to: 7 }),
          store.versions.diff(1, 7),
          store.versions.diff(0.5, 1),
        ]
        expect(await Promise.all(missing.map(codeOf))).toEqual(missing.map(() => 'SLUICE_NOT_FOUND'))
      })

      it('Bad rule set published: it is rejected with all its problems, and the old one stays in force', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        const before = await store.feed.head()
        const bad = {
          rules: [
            { resource: '/orders', dimension: 'user', limit: -1, window: '1m' },
            { resource: '/ok', dimension: 'user', limit: 1, window: '1m' },
            { resource: '/orders', dimension: 'invalid!', limit: 1, window: 'never' },
          ],
          surprise: true,
        } as unknown as RuleSet
        for (const publish of [
          () => draftOf(store.versions, bad, ALICE),
          () => store.versions.edit(() => bad, ALICE),
        ]) {
          const published = publish()
          await expect(published).rejects.toMatchObject({ code: 'SLUICE_INVALID_RULE_SET' })
          const { problems } = (await published.catch((error: unknown) => error)) as { problems: { path: string }[] }
          const paths = new Set(problems.map(({ path }) => path))
          for (const path of ['/rules/0/limit', '/rules/2/dimension', '/rules/2/window', '/surprise']) {
            expect(paths).toContain(path)
          }
          expect([...paths].some((path) => path.startsWith('/rules/1'))).toBe(false)
        }
        expect((await store.versions.current()).enforced).toMatchObject({ number: 1, stage: 'enforce' })
        expect((await store.versions.list()).items).toHaveLength(1)
        expect(await store.feed.head()).toBe(before)
        expect(await actionsOf(store)).toEqual(['version.edit version 1'])
      })

      it('are edited in one step, by who knows what is enforced', async () => {
        const first = await store.versions.edit((ruleSet) => ({ ...ruleSet, incident: 0.5 }), ALICE, 0)
        expect(first).toMatchObject({ number: 1, stage: 'enforce', basedOn: undefined })
        expect(await codeOf(store.versions.edit((ruleSet) => ruleSet, BOB, 0))).toBe('SLUICE_CONFLICT')
        const second = await store.versions.edit((ruleSet) => ({ ...ruleSet, regions: { US: 3 } }), BOB, 1)
        expect(second).toMatchObject({ number: 2, basedOn: 1 })
        const content = await store.versions.get(2)
        expect(content?.ruleSet).toEqual({ rules: [], incident: 0.5, regions: { US: 3 } })
        expect(await store.versions.get(1)).toMatchObject({ stage: 'retired' })
      })

      it('are as they were when an edit throws', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        const failing = store.versions.edit(() => {
          throw new RangeError('changed my mind')
        }, ALICE)
        await expect(failing).rejects.toThrow(new RangeError('changed my mind'))
        expect((await store.versions.list()).items).toHaveLength(1)
      })

      it('are rolled back in one call, one by one, and retire the candidate', async () => {
        for (let limit = 1; limit <= 3; limit++) await store.versions.edit(() => ruleSetOf(limit), ALICE)
        await draftOf(store.versions, ruleSetOf(4), ALICE)
        await store.versions.stage(4, { stage: 'shadow' }, ALICE)

        expect(await store.versions.rollback(BOB)).toMatchObject({ number: 2, stage: 'enforce' })
        expect(await store.versions.current()).toMatchObject({ enforced: { number: 2 }, candidate: undefined })
        expect((await store.versions.list()).items.map(({ stage }) => stage)).toEqual([
          'retired',
          'retired',
          'enforce',
          'retired',
        ])
        expect(await store.versions.rollback(BOB)).toMatchObject({ number: 1 })
        const nothingLeft = store.versions.rollback(BOB)
        await expect(nothingLeft).rejects.toThrow('version 1 is the first that was enforced')
        expect(await codeOf(nothingLeft)).toBe('SLUICE_NOT_FOUND')
        expect(await store.versions.rollback(BOB, { to: 3 })).toMatchObject({ number: 3, stage: 'enforce' })
        // What was made on top of another one goes back to that one.
        await store.versions.edit(() => ruleSetOf(5), ALICE, 3)
        expect(await store.versions.rollback(BOB)).toMatchObject({ number: 3 })
      })

      it('are rolled back once by two who have seen the same one enforced', async () => {
        for (let limit = 1; limit <= 3; limit++) await store.versions.edit(() => ruleSetOf(limit), ALICE)
        expect(await store.versions.rollback(ALICE, { ifVersion: 3 })).toMatchObject({ number: 2 })
        for (const options of [{ ifVersion: 3 }, { ifVersion: 3, to: 1 }, { ifVersion: 0 }]) {
          const late = store.versions.rollback(BOB, options)
          await expect(late).rejects.toMatchObject({ code: 'SLUICE_CONFLICT', expected: 'version 2' })
        }
        expect((await store.versions.current()).enforced).toMatchObject({ number: 2 })
        expect(await store.versions.rollback(BOB, { ifVersion: 2 })).toMatchObject({ number: 1 })
      })

      it('say what their author has seen enforced', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        const unsaid = store.versions.create(ruleSetOf(2), ALICE, undefined as unknown as number)
        await expect(unsaid).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
        await expect(unsaid).rejects.toThrow('Pass what "current()" said when its author began.')
        expect((await store.versions.list()).items).toHaveLength(1)
        await store.versions.create(ruleSetOf(3), ALICE, 0)
        const late = store.versions.stage(2, { stage: 'enforce' }, ALICE)
        await expect(late).rejects.toThrow('version 2 was based on none, and version 1 is enforced by now')
      })

      it('that were never enforced are no way back', async () => {
        expect(await codeOf(store.versions.rollback(ALICE))).toBe('SLUICE_NOT_FOUND')
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        expect(await codeOf(store.versions.rollback(ALICE, { to: 2 }))).toBe('SLUICE_CONFLICT')
        expect((await store.versions.current()).enforced).toMatchObject({ number: 1 })
      })

      it('are shown to who has to approve beside the one enforced, and stay as they are when that throws', async () => {
        const seen: unknown[] = []
        const approve: VersionApproval = (after, before) => void seen.push([after, before])
        const reject: VersionApproval = () => {
          throw new Error('not by you')
        }
        await draftOf(store.versions, ruleSetOf(1), ALICE)
        await store.versions.stage(1, { stage: 'enforce', approve }, ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        for (const stage of [{ stage: 'shadow' }, { stage: 'percent', percent: 5 }, { stage: 'enforce' }] as const) {
          await expect(store.versions.stage(2, { ...stage, approve: reject }, BOB)).rejects.toThrow('not by you')
        }
        await store.versions.stage(2, { stage: 'percent', percent: 5, approve }, BOB)
        await store.versions.stage(2, { stage: 'enforce', approve }, BOB)
        await expect(store.versions.rollback(BOB, { approve: reject })).rejects.toThrow('not by you')
        expect((await store.versions.current()).enforced).toMatchObject({ number: 2 })
        await store.versions.rollback(BOB, { to: 1, approve })
        expect(seen).toEqual([
          [ruleSetOf(1), { rules: [] }],
          [ruleSetOf(2), ruleSetOf(1)],
          [ruleSetOf(2), ruleSetOf(1)],
          [ruleSetOf(1), ruleSetOf(2)],
        ])
        // Retiring a version needs no approval.
        await draftOf(store.versions, ruleSetOf(3), ALICE)
        await store.versions.stage(3, { stage: 'shadow' }, ALICE)
        expect(await store.versions.stage(3, { stage: 'retired', approve: reject }, BOB)).toMatchObject({ number: 3 })
      })

      it('tell what changes from one to another', async () => {
        await draftOf(store.versions, ruleSetOf(1), ALICE)
        await draftOf(store.versions, { ...ruleSetOf(2), tiers: [{ name: 'free' }] }, ALICE)
        const changes = await store.versions.diff(1, 2)
        expect(changes.map(({ change, part, name: of }) => [change, part, of === '' ? '' : 'named'])).toEqual([
          ['changed', 'rules', 'named'],
          ['added', 'tiers', 'named'],
        ])
        expect(await store.versions.diff(1, 1)).toEqual([])
      })
    })

    describe('entries', () => {
      it('are put, read, changed and removed', async () => {
        const entry = { ...override('u1', 5), expiresAt: nowMs + 1000 }
        const key = { dimension: 'user', entity: 'u1', resource: '/orders' }
        expect(await store.overrides.get(key)).toBeUndefined()
        const first = await store.overrides.put(entry, ALICE)
        expect(first).toEqual({ entry, revision: 2, changedAt: nowMs, changedBy: 'alice' })
        nowMs += 5
        const second = await store.overrides.put(override('u1', 6), BOB)
        expect(second.revision).toBeGreaterThan(first.revision)
        expect(await store.overrides.get(key)).toEqual({
          entry: override('u1', 6),
          revision: second.revision,
          changedAt: nowMs,
          changedBy: 'bob',
        })
        expect(await store.overrides.remove(key, ALICE)).toBe(true)
        expect(await store.overrides.remove(key, ALICE)).toBe(false)
        expect(await store.overrides.get(key)).toBeUndefined()
        expect((await store.overrides.put(entry, ALICE)).revision).toBeGreaterThan(second.revision)
      })

      const members: Membership = { dimension: 'tenant', entity: 't1', tier: 'premium' }
      const block: Block = {
        dimension: 'ip',
        entity: '10.0.0.1',
        until: 1e13,
        strikes: 2,
        forgottenAt: 2e13,
        reason: 'x',
      }

      it.each<{ kind: 'overrides' | 'members' | 'blocks'; entry: Override | Membership | Block }>([
        { kind: 'overrides', entry: override('u1', 5) },
        { kind: 'members', entry: members },
        { kind: 'blocks', entry: block },
      ])('of $kind are changed only by who has seen what is there', async ({ kind, entry }) => {
        const table = store[kind] as EntryTable<Override | Membership | Block, EntityKey & OverrideKey>
        const key = { resource: '/orders', ...entry } as OverrideKey
        const first = await table.put(entry, ALICE, { ifRevision: 0 })
        expect(await codeOf(table.put(entry, BOB, { ifRevision: 0 }))).toBe('SLUICE_CONFLICT')
        const second = await table.put(entry, BOB, { ifRevision: first.revision })
        const late = table.put(entry, ALICE, { ifRevision: first.revision })
        await expect(late).rejects.toThrow('has changed since it was read')
        expect(await codeOf(late)).toBe('SLUICE_CONFLICT')
        expect(await codeOf(table.remove(key, ALICE, { ifRevision: first.revision }))).toBe('SLUICE_CONFLICT')
        expect((await table.get(key))?.changedBy).toBe('bob')
        expect(await table.remove(key, ALICE, { ifRevision: second.revision })).toBe(true)
        expect(await codeOf(table.put(entry, BOB, { ifRevision: second.revision }))).toBe('SLUICE_CONFLICT')
        expect(await table.get(key)).toBeUndefined()
      })

      it('are distinguished by keys with any character, of any length', async () => {
        for (const [index, entity] of KEYS.entries()) await store.overrides.put(override(entity, index), ALICE)
        const found = await Promise.all(
          KEYS.map((entity) => store.overrides.get({ dimension: 'user', entity, resource: '/orders' })),
        )
        expect(found.map((stored) => stored?.entry)).toEqual(KEYS.map((entity, i) => override(entity, i)))
        const listed = await itemsOf((page) => store.overrides.list(page), 3)
        expect(new Set(listed.map(({ entry }) => entry.entity))).toEqual(new Set(KEYS))
        const reader = await FeedReader.load(store.feed)
        expect(reader.overrides.map(({ entity }) => entity).sort()).toEqual([...KEYS].sort())
        for (const entity of KEYS) {
          expect(await store.overrides.remove({ dimension: 'user', entity, resource: '/orders' }, ALICE)).toBe(true)
        }
        await reader.follow()
        expect(reader.overrides).toEqual([])
      })

      it('are listed in the order of their keys, by dimension and entity, page by page', async () => {
        for (const entity of ['b', 'a', 'c', 'B']) {
          await store.overrides.put(override(entity, 1, '/z'), ALICE)
          await store.overrides.put(override(entity, 1, '/a'), ALICE)
        }
        await store.overrides.put({ ...override('a', 1), dimension: 'tenant' }, ALICE)
        const list = async (filter: object, limit?: number): Promise<readonly string[]> => {
          const items = await itemsOf((page) => store.overrides.list({ ...filter, ...page }), limit)
          return items.map(({ entry }) => `${entry.dimension}:${entry.entity}${entry.resource}`)
        }
        const users = ['B/a', 'B/z', 'a/a', 'a/z', 'b/a', 'b/z', 'c/a', 'c/z'].map((rest) => `user:${rest}`)
        expect(await list({})).toEqual(['tenant:a/orders', ...users])
        expect(await list({}, 2)).toEqual(['tenant:a/orders', ...users])
        expect(await list({ dimension: 'user' }, 3)).toEqual(users)
        expect(await list({ entity: 'a' }, 1)).toEqual(['tenant:a/orders', 'user:a/a', 'user:a/z'])
        expect(await list({ dimension: 'user', entity: 'c' })).toEqual(['user:c/a', 'user:c/z'])
        expect(await list({ dimension: 'unused' })).toEqual([])
        expect(await codeOf(store.members.list({ entity: 'a', limit: 1.5 }))).toBe('SLUICE_INVALID_OPTION')
        expect((await store.members.list({ entity: 'a' })).items).toEqual([])
      })

      it('are rejected with all that is wrong with them', async () => {
        const bad = { dimension: 'user', entity: 'u1', resource: '/orders', terms: { limit: -1 }, more: 1 }
        await expect(store.overrides.put(bad as unknown as Override, ALICE)).rejects.toMatchObject({
          code: 'SLUICE_INVALID_RULE_SET',
          problems: expect.arrayContaining([expect.objectContaining({ path: '/terms/limit' })]),
        })
        const wrong = [
          store.members.put({ dimension: 'user', entity: 'u1' } as Membership, ALICE),
          store.blocks.put({ ...block, until: 'soon' } as unknown as Block, ALICE),
          store.incident.set({ active: 'yes' } as unknown as { active: boolean }, ALICE),
        ]
        expect(await Promise.all(wrong.map(codeOf))).toEqual(wrong.map(() => 'SLUICE_INVALID_RULE_SET'))
        expect(await actionsOf(store)).toEqual([])
      })

      it('are put by the thousand, in one step, of equal ones the last', async () => {
        await store.overrides.put(override('u7', 1), ALICE)
        const before = await store.feed.head()
        const entries = Array.from({ length: 12_345 }, (_, index) => override(`u${(index * 37) % 12_000}`, index))
        expect(await store.overrides.putAll(entries, BOB)).toEqual({ count: 12_345 })
        const expected = new Map(entries.map((entry) => [entry.entity, entry]))
        const listed = await itemsOf((page) => store.overrides.list(page))
        expect(new Map(listed.map(({ entry }) => [entry.entity, entry]))).toEqual(expected)
        expect(new Set(listed.map(({ revision }) => revision)).size).toBe(12_000)

        const reader = new FeedReader(store.feed, before)
        await reader.follow()
        expect(new Map(reader.overrides.map((entry) => [entry.entity, entry]))).toEqual(expected)
        const records = await itemsOf((page) => store.audit.list({ ...page, action: 'override.put-all' }))
        expect(records.map(({ by }) => by)).toEqual(Array.from({ length: 13 }, () => 'bob'))
        expect(records.flatMap(({ after }) => after as Override[])).toHaveLength(12_345)
      })

      it('are put all or none', async () => {
        const entries = Array.from({ length: 6000 }, (_, index) => override(`u${index}`, index === 5999 ? -1 : 1))
        await expect(store.overrides.putAll(entries, ALICE)).rejects.toMatchObject({
          code: 'SLUICE_INVALID_RULE_SET',
          problems: [expect.objectContaining({ path: '/5999/terms/limit' })],
        })
        expect((await store.overrides.list()).items).toEqual([])
        expect(await store.overrides.putAll([], ALICE)).toEqual({ count: 0 })
        expect(await actionsOf(store)).toEqual([])
      })

      it('of blocks go away by themselves a day after they are forgotten', async () => {
        const old = { ...block, entity: 'old', until: nowMs + 10, forgottenAt: nowMs + 1000 }
        await store.blocks.put(old, ALICE)
        nowMs += DAY_MS + 1000
        await store.blocks.put({ ...old, entity: 'new', forgottenAt: nowMs + 10 }, ALICE)
        expect((await store.blocks.list()).items.map(({ entry }) => entry.entity)).toEqual(['new', 'old'])
        nowMs++
        await store.blocks.put({ ...old, entity: 'newer', until: nowMs + 10, forgottenAt: nowMs + 10 }, ALICE)
        expect((await store.blocks.list()).items.map(({ entry }) => entry.entity)).toEqual(['new', 'newer'])
      })
    })

    describe('the incident', () => {
      it('is off at first, and switched by who has seen it', async () => {
        const off = await store.incident.get()
        expect(off).toMatchObject({ entry: { active: false }, revision: 1 })
        const on = await store.incident.set({ active: true, until: nowMs + 60_000 }, ALICE, {
          ifRevision: off.revision,
        })
        expect(await store.incident.get()).toEqual(on)
        expect(on).toMatchObject({ entry: { active: true, until: nowMs + 60_000 }, changedBy: 'alice' })
        const late = store.incident.set({ active: false }, BOB, { ifRevision: off.revision })
        expect(await codeOf(late)).toBe('SLUICE_CONFLICT')
        await store.incident.set({ active: false }, BOB, { ifRevision: on.revision })
        expect((await store.incident.get()).entry).toEqual({ active: false })
      })
    })

    describe('API keys', () => {
      it('are valid with their secret, and with nothing else', async () => {
        const { apiKey, token } = await store.apiKeys.create({ name: 'ci', role: 'editor', tenant: 't1' }, ALICE)
        expect(apiKey).toEqual({
          id: expect.stringMatching(/^slk_[0-9A-Za-z]{12}$/),
          name: 'ci',
          role: 'editor',
          tenant: 't1',
          tier: undefined,
          createdAt: nowMs,
          expiresAt: undefined,
          revokedAt: undefined,
          rotatedFrom: undefined,
        })
        expect(token).toMatch(new RegExp(`^${apiKey.id}_[0-9A-Za-z]{43}$`))
        expect(await store.apiKeys.verify(token)).toEqual(apiKey)
        const other = await store.apiKeys.create({ name: 'other', role: 'none' }, ALICE)
        const secret = token.slice(apiKey.id.length + 1)
        const last = token.endsWith('0') ? '1' : '0'
        const wrong = [
          '',
          token.slice(0, -1),
          `${token}0`,
          token.slice(0, -1) + last,
          `${other.apiKey.id}_${secret}`,
          `slk_000000000000_${secret}`,
          ` ${token}`,
          undefined as unknown as string,
        ]
        for (const given of wrong) expect(await store.apiKeys.verify(given)).toBeUndefined()
      })

      it('end when they expire', async () => {
        const { token } = await store.apiKeys.create({ name: 'k', role: 'viewer', expiresAt: nowMs + 10 }, ALICE)
        nowMs += 9
        expect(await store.apiKeys.verify(token)).toMatchObject({ name: 'k' })
        nowMs++
        expect(await store.apiKeys.verify(token)).toBeUndefined()
      })

      it('end at once when they are revoked', async () => {
        const { apiKey, token } = await store.apiKeys.create({ name: 'k', role: 'editor' }, ALICE)
        expect(await store.apiKeys.revoke(apiKey.id, BOB)).toBe(true)
        expect(await store.apiKeys.verify(token)).toBeUndefined()
        expect(await store.apiKeys.revoke(apiKey.id, BOB)).toBe(false)
        expect(await store.apiKeys.revoke('slk_000000000000', BOB)).toBe(false)
        expect((await store.apiKeys.list()).items).toEqual([{ ...apiKey, revokedAt: nowMs }])
        expect(await codeOf(store.apiKeys.rotate(apiKey.id, ALICE, 1000))).toBe('SLUICE_CONFLICT')
      })

      it('are rotated with an overlap in which both are valid', async () => {
        const options = { name: 'k', role: 'admin', tier: 'premium', expiresAt: nowMs + 10_000 } as const
        const old = await store.apiKeys.create(options, ALICE)
        nowMs += 4000
        const young = await store.apiKeys.rotate(old.apiKey.id, BOB, 100)
        expect(young.apiKey).toMatchObject({
          name: 'k',
          role: 'admin',
          tier: 'premium',
          expiresAt: nowMs + 10_000,
          rotatedFrom: old.apiKey.id,
        })
        nowMs += 99
        expect(await store.apiKeys.verify(old.token)).toMatchObject({ id: old.apiKey.id })
        expect(await store.apiKeys.verify(young.token)).toEqual(young.apiKey)
        nowMs++
        expect(await store.apiKeys.verify(old.token)).toBeUndefined()
        expect(await store.apiKeys.verify(young.token)).toEqual(young.apiKey)
        // The overlap does not make a key last longer than it would have.
        const next = await store.apiKeys.rotate(young.apiKey.id, BOB, 1e9)
        const kept = (await store.apiKeys.list()).items.find(({ id }) => id === young.apiKey.id)
        expect(kept?.expiresAt).toBe(young.apiKey.expiresAt)
        expect(next.apiKey.rotatedFrom).toBe(young.apiKey.id)
      })

      it('that may do everything are not revoked while no other lasts as long', async () => {
        const issue = async (more: object = {}): Promise<string> =>
          (await store.apiKeys.create({ name: 'k', role: 'admin', ...more }, ALICE)).apiKey.id
        const revoke = async (id: string): Promise<unknown> => {
          const outcome = store.apiKeys.revoke(id, BOB)
          return await outcome.catch(() => codeOf(outcome))
        }
        const short = await issue({ expiresAt: nowMs + 1000 })
        expect(await revoke(short)).toBe('SLUICE_CONFLICT')
        const long = await issue({ expiresAt: nowMs + 2000 })
        expect([await revoke(long), await revoke(short)]).toEqual(['SLUICE_CONFLICT', true])
        const lasting = await issue()
        // None of these is left when the one is gone.
        await issue({ tenant: 't1' })
        await issue({ role: 'editor' })
        await revoke(await issue())
        expect([await revoke(lasting), await revoke(long)]).toEqual(['SLUICE_CONFLICT', true])
        // What takes its place lasts as long, and may be the last in its turn.
        const { apiKey } = await store.apiKeys.rotate(lasting, BOB, 1000)
        expect([await revoke(apiKey.id), await revoke(lasting)]).toEqual(['SLUICE_CONFLICT', true])
        await issue()
        expect(await revoke(apiKey.id)).toBe(true)
      })

      it('are made as the first when there has never been one', async () => {
        const first = await store.apiKeys.createFirst({ name: 'first', role: 'editor' }, ALICE)
        expect(await store.apiKeys.verify(first!.token)).toEqual(first!.apiKey)
        const position = await store.feed.head()
        expect(await store.apiKeys.createFirst({ name: 'next', role: 'admin' }, ALICE)).toBeUndefined()
        expect(await store.feed.head()).toBe(position)
        await store.apiKeys.revoke(first!.apiKey.id, ALICE)
        expect(await store.apiKeys.createFirst({ name: 'next', role: 'admin' }, ALICE)).toBeUndefined()
        expect(await actionsOf(store)).toEqual([
          `api-key.create ${first!.apiKey.id}`,
          `api-key.revoke ${first!.apiKey.id}`,
        ])
        expect(await codeOf(store.apiKeys.createFirst({ name: '', role: 'admin' }, ALICE))).toBe(
          'SLUICE_INVALID_OPTION',
        )
      })

      it('are made with a token that was drawn elsewhere', async () => {
        const token = `slk_${'a1B2'.repeat(3)}_${'x'.repeat(43)}`
        const made = await store.apiKeys.create({ name: 'given', role: 'admin' }, ALICE, token)
        expect([made.token, made.apiKey.id]).toEqual([token, 'slk_a1B2a1B2a1B2'])
        expect(await store.apiKeys.verify(token)).toEqual(made.apiKey)
        expect(await store.apiKeys.verify(`${token.slice(0, -1)}y`)).toBeUndefined()
        const again = store.apiKeys.create({ name: 'again', role: 'admin' }, ALICE, token)
        expect(await codeOf(again)).toBe('SLUICE_CONFLICT')
        for (const wrong of ['slk_short_short', `${token}x`, ` ${token}`]) {
          const failure = await store.apiKeys.create({ name: 'k', role: 'admin' }, ALICE, wrong).catch(String)
          expect(failure).toContain('SLUICE_INVALID_OPTION')
          expect(failure).not.toContain(wrong)
        }
      })

      it('are rejected when they make no sense', async () => {
        const create = (key: object): Promise<unknown> =>
          codeOf(store.apiKeys.create({ name: 'k', role: 'admin', ...key }, ALICE))
        const wrong = [{ name: '' }, { role: 'root' }, { tenant: '' }, { tier: 5 }, { expiresAt: Number.NaN }]
        expect(await Promise.all(wrong.map(create))).toEqual(wrong.map(() => 'SLUICE_INVALID_OPTION'))
        expect(await codeOf(store.apiKeys.rotate('slk_x', ALICE, -1))).toBe('SLUICE_INVALID_OPTION')
        expect(await codeOf(store.apiKeys.rotate('slk_x', ALICE, 1))).toBe('SLUICE_NOT_FOUND')
      })
    })

    describe('the audit log', () => {
      it('has one record for each change, with what was before and after', async () => {
        await store.versions.edit(() => ruleSetOf(1), ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        await store.versions.stage(2, { stage: 'enforce' }, ALICE)
        await store.versions.rollback(ALICE)
        await store.overrides.put(override('u1', 5), ALICE)
        await store.overrides.put(override('u1', 6), BOB)
        await store.overrides.remove({ dimension: 'user', entity: 'u1', resource: '/orders' }, BOB)
        await store.members.put({ dimension: 'user', entity: 'u1', tier: 'free' }, ALICE)
        await store.incident.set({ active: true }, ALICE)
        const { apiKey } = await store.apiKeys.create({ name: 'k', role: 'editor' }, ALICE)
        const rotated = await store.apiKeys.rotate(apiKey.id, ALICE, 5)
        await store.apiKeys.revoke(rotated.apiKey.id, ALICE)
        expect(await actionsOf(store)).toEqual([
          'version.edit version 1',
          'version.create version 2',
          'version.stage version 2',
          'version.rollback version 1',
          'override.put user:u1 /orders',
          'override.put user:u1 /orders',
          'override.remove user:u1 /orders',
          'member.put user:u1',
          'incident.set incident',
          `api-key.create ${apiKey.id}`,
          `api-key.rotate ${apiKey.id}`,
          `api-key.revoke ${rotated.apiKey.id}`,
        ])
        const [removed, changed] = (await store.audit.list({ by: 'bob' })).items
        expect(changed).toEqual({
          number: expect.any(Number),
          at: nowMs,
          by: 'bob',
          keyId: undefined,
          note: undefined,
          action: 'override.put',
          target: 'user:u1 /orders',
          details: undefined,
          before: override('u1', 5),
          after: override('u1', 6),
        })
        expect(removed).toMatchObject({ before: override('u1', 6), after: undefined })
        const [staged] = (await store.audit.list({ action: 'version.stage' })).items
        expect(staged).toMatchObject({ note: 'because', before: { stage: 'draft' }, after: { stage: 'enforce' } })
      })

      it('tells two authors of one name apart by their API keys', async () => {
        const [one, other] = [
          { name: 'ops', keyId: 'slk_one' },
          { name: 'ops', keyId: 'slk_other' },
        ]
        await store.members.put({ dimension: 'user', entity: 'u1', tier: 'free' }, one)
        await store.members.put({ dimension: 'user', entity: 'u2', tier: 'free' }, other)
        await store.audit.add({ action: 'counters.reset', target: 'user:u1', details: { counters: [] } }, other)
        await store.incident.set({ active: true }, { name: 'ops' })
        const { items } = await store.audit.list({ by: 'ops' })
        expect(items.map(({ keyId, target }) => [keyId, target])).toEqual([
          [undefined, 'incident'],
          ['slk_other', 'user:u1'],
          ['slk_other', 'user:u2'],
          ['slk_one', 'user:u1'],
        ])
        expect(items[1]).toMatchObject({ details: { counters: [] } })
        const { items: own } = await store.audit.list({ keyId: 'slk_one' })
        expect(own).toMatchObject([{ keyId: 'slk_one', action: 'member.put' }])
        const wrong = { name: 'ops', keyId: '' }
        expect(await codeOf(store.incident.set({ active: false }, wrong))).toBe('SLUICE_INVALID_OPTION')
      })

      it('writes names so that no two entries read alike', async () => {
        const entities = ['a b', 'a" b', 'a\\b', 'a\u202eb', 'a:b', 'ä']
        for (const entity of entities) await store.overrides.put(override(entity, 5), ALICE)
        await store.blocks.put({ dimension: 'user', entity: 'a b:c', until: 1, strikes: 1, forgottenAt: 1 }, ALICE)
        expect((await actionsOf(store)).map((text) => text.slice(text.indexOf(' ') + 1))).toEqual([
          'user:"a b" /orders',
          'user:"a\\" b" /orders',
          'user:"a\\\\b" /orders',
          'user:"a\\u202eb" /orders',
          'user:a:b /orders',
          'user:ä /orders',
          'user:"a b:c"',
        ])
      })

      it('holds no secret', async () => {
        const { apiKey, token } = await store.apiKeys.create({ name: 'k', role: 'admin' }, ALICE)
        const rotated = await store.apiKeys.rotate(apiKey.id, ALICE, 5)
        await store.apiKeys.revoke(apiKey.id, ALICE)
        const { changes } = await store.feed.since(1)
        const hashes = changes.flatMap((change) => (change.kind === 'api-key' ? [change.entry!.secretHash] : []))
        expect(hashes).toHaveLength(2)
        const log = JSON.stringify((await store.audit.list()).items)
        for (const secret of [token, rotated.token].map((text) => text.slice(text.lastIndexOf('_') + 1))) {
          expect(log).not.toContain(secret)
        }
        for (const hash of hashes) expect(log).not.toContain(hash)
        expect(log).toContain(apiKey.id)
      })

      it('is read by author, action and time, page by page, newest first', async () => {
        for (let index = 0; index < 6; index++) {
          nowMs += 10
          await store.overrides.put(override(`u${index}`, 1), index % 2 === 0 ? ALICE : BOB)
        }
        await store.incident.set({ active: true }, ALICE)
        const read = async (filter: object, limit?: number): Promise<readonly string[]> =>
          (await itemsOf((page) => store.audit.list({ ...filter, ...page }), limit)).map(({ target }) => target)
        const puts = ['u5', 'u4', 'u3', 'u2', 'u1', 'u0'].map((entity) => `user:${entity} /orders`)
        expect(await read({}, 2)).toEqual(['incident', ...puts])
        expect(await read({ action: 'override.put' }, 4)).toEqual(puts)
        expect(await read({ by: 'bob' }, 1)).toEqual([puts[0], puts[2], puts[4]])
        expect(await read({ since: nowMs - 10 })).toEqual(['incident', puts[0], puts[1]])
        expect(await read({ since: nowMs - 10, by: 'alice', action: 'override.put' })).toEqual([puts[1]])
        expect(await codeOf(store.audit.list({ since: Number.NaN }))).toBe('SLUICE_INVALID_OPTION')
      })

      it('has nothing of a change that was rejected', async () => {
        await store.overrides.put(override('u1', 5), ALICE)
        await codeOf(store.overrides.put(override('u1', 6), BOB, { ifRevision: 99 }))
        expect(await actionsOf(store)).toEqual(['override.put user:u1 /orders'])
      })
    })

    describe('the change feed', () => {
      it('loads everything there is, and goes on from there', async () => {
        await store.versions.edit(() => RULE_SET, ALICE)
        await draftOf(store.versions, ruleSetOf(2), ALICE)
        await store.versions.stage(2, { stage: 'percent', percent: 5 }, ALICE)
        await store.overrides.put(override('u1', 5), ALICE)
        await store.overrides.put(override('gone', 5), ALICE)
        await store.overrides.remove({ dimension: 'user', entity: 'gone', resource: '/orders' }, ALICE)
        await store.members.put({ dimension: 'user', entity: 'u1', tier: 'free' }, ALICE)
        await store.incident.set({ active: true }, ALICE)
        const { apiKey } = await store.apiKeys.create({ name: 'k', role: 'editor' }, ALICE)
        const reader = await FeedReader.load(store.feed)
        expect(reader.position).toBe(await store.feed.head())
        expect(reader.state).toEqual({
          enforced: await store.versions.get(1),
          candidate: await store.versions.get(2),
          overrides: [override('u1', 5)],
          members: [{ dimension: 'user', entity: 'u1', tier: 'free' }],
          blocks: [],
          incident: { active: true },
          apiKeys: [{ ...apiKey, secretHash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
        })
        expect(await reader.follow()).toBe(0)
        await store.members.remove({ dimension: 'user', entity: 'u1' }, ALICE)
        await store.apiKeys.revoke(apiKey.id, ALICE)
        await store.versions.rollback(ALICE, { to: 1 })
        expect(await reader.follow()).toBe(1)
        expect(reader.state).toMatchObject({ candidate: undefined, members: [], apiKeys: [{ revokedAt: nowMs }] })
        expect(reader.state).toEqual((await FeedReader.load(store.feed)).state)
      })

      it('says what is in force only when that has changed', async () => {
        const start = await store.feed.head()
        await draftOf(store.versions, ruleSetOf(1), ALICE)
        const drafted = await store.feed.since(start)
        expect(drafted).toMatchObject({ versions: undefined, changes: [], more: false, restart: false })
        await store.versions.stage(1, { stage: 'enforce' }, ALICE)
        const enforced = await store.feed.since(drafted.position)
        expect(enforced.versions?.enforced).toEqual(await store.versions.get(1))
        await store.overrides.put(override('u1', 1), ALICE)
        expect((await store.feed.since(enforced.position)).versions).toBeUndefined()
      })

      it('has a restart for who asks for a position it does not know', async () => {
        await store.overrides.put(override('u1', 5), ALICE)
        const head = await store.feed.head()
        const restart = { restart: true, changes: [], versions: undefined, more: false }
        expect(await store.feed.since(head + 1)).toMatchObject(restart)
        expect(await store.feed.since(-1)).toMatchObject(restart)
        expect(await store.feed.since(Number.NaN)).toMatchObject(restart)
        expect(await store.feed.since(head)).toMatchObject({ restart: false })
      })

      it('forgets removals after 7 days, and reports that to readers that were disconnected for longer', async () => {
        const remove = async (entity: string): Promise<void> => {
          await store.overrides.put(override(entity, 1), ALICE)
          await store.overrides.remove({ dimension: 'user', entity, resource: '/orders' }, ALICE)
        }
        const start = await store.feed.head()
        await remove('a')
        const afterFirst = await store.feed.head()
        nowMs += 7 * DAY_MS
        await remove('b')
        expect((await store.feed.since(start)).changes).toHaveLength(2)
        nowMs++
        await remove('c')
        expect(await store.feed.since(start)).toMatchObject({ restart: true })
        const late = await store.feed.since(afterFirst)
        expect(late.restart).toBe(false)
        expect(late.changes.map((change) => ('key' in change ? change.key : ''))).toMatchObject([
          { entity: 'b' },
          { entity: 'c' },
        ])
      })

      it('comes in batches, in which nothing is lost', async () => {
        const entries = Array.from({ length: 4500 }, (_, index) => override(`u${index}`, index))
        const start = await store.feed.head()
        await store.overrides.putAll(entries, ALICE)
        const sizes: number[] = []
        for (let position = start; ; ) {
          const batch = await store.feed.since(position)
          sizes.push(batch.changes.length)
          position = batch.position
          if (!batch.more) break
        }
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(4500)
        expect(sizes.length).toBeGreaterThan(1)
      })

      it('gives a hint after each change, until it is stopped', async () => {
        let hints = 0
        const stop = await store.feed.watch(
          () => {
            hints++
          },
          () => undefined,
        )
        await store.overrides.put(override('u1', 5), ALICE)
        await until('the hint has come', () => hints >= 1)
        await stop()
        await stop()
        const before = hints
        await store.overrides.put(override('u1', 6), ALICE)
        const again = await store.feed.watch(
          () => {
            hints += 1000
          },
          () => undefined,
        )
        await store.overrides.put(override('u1', 7), ALICE)
        await until('the second hint has come', () => hints >= 1000)
        await again()
        expect(hints % 1000).toBe(before)
      })
    })

    it('is closed once and for all, and says so', async () => {
      await store.close()
      await store.close()
      const calls = [
        store.overrides.get({ dimension: 'user', entity: 'u1', resource: '*' }),
        store.overrides.put(override('u1', 5), ALICE),
        store.feed.head(),
        store.feed.watch(
          () => undefined,
          () => undefined,
        ),
      ]
      expect(await Promise.all(calls.map(codeOf))).toEqual(calls.map(() => 'SLUICE_CLOSED'))
    })

    describeSharedValues((options) => database.open(options))
    describeSpellings((options) => database.open(options))
    if (subject.isShared) describeSharing(() => database)
  })
}

/** What holds when several use one database, as nodes do. */
function describeSharing(database: () => TestDatabase): void {
  describe('shared by several nodes', () => {
    async function openAll(count: number): Promise<readonly ConfigStore[]> {
      return await Promise.all(Array.from({ length: count }, () => database().open({ connections: 2, pollMs: 20 })))
    }

    it('lets one of two editors through who change the same version, entry or switch at the same time', async () => {
      const editors = await openAll(4)
      const [first] = editors
      await first!.versions.edit(() => ruleSetOf(0), ALICE)
      const { revision } = await first!.overrides.put(override('u1', 0), ALICE)
      const incident = await first!.incident.get()
      const draft = await draftOf(first!.versions, ruleSetOf(100), ALICE)
      const race = async (attempt: (editor: ConfigStore, index: number) => Promise<unknown>): Promise<unknown[]> =>
        (await Promise.all(editors.map((editor, index) => codeOf(attempt(editor, index))))).sort()
      const oneWins = ['SLUICE_CONFLICT', 'SLUICE_CONFLICT', 'SLUICE_CONFLICT', 'no error']
      const staged = await race((editor) =>
        editor.versions.stage(2, { stage: 'shadow', ifRevision: draft.revision }, ALICE),
      )
      expect(staged).toEqual(oneWins)
      const edited = await race((editor, index) => editor.versions.edit(() => ruleSetOf(index + 1), ALICE, 1))
      expect(edited).toEqual(oneWins)
      expect((await first!.versions.list()).items).toHaveLength(3)
      const put = await race((editor, index) =>
        editor.overrides.put(override('u1', index + 1), ALICE, { ifRevision: revision }),
      )
      expect(put).toEqual(oneWins)
      const created = await race((editor) => editor.overrides.put(override('u2', 1), ALICE, { ifRevision: 0 }))
      expect(created).toEqual(oneWins)
      const switched = await race((editor) =>
        editor.incident.set({ active: true }, ALICE, { ifRevision: incident.revision }),
      )
      expect(switched).toEqual(oneWins)
      const removed = await Promise.all(
        editors.map((editor) =>
          editor.overrides.remove({ dimension: 'user', entity: 'u2', resource: '/orders' }, ALICE),
        ),
      )
      expect(removed.filter(Boolean)).toHaveLength(1)
    })

    it('creates one first key, and never ends the last one with all permissions, also concurrently', async () => {
      const nodes = await openAll(4)
      const [node] = nodes
      const made = await Promise.all(
        nodes.map(({ apiKeys }) => apiKeys.createFirst({ name: 'first', role: 'admin' }, ALICE)),
      )
      expect(made.filter((issued) => issued !== undefined)).toHaveLength(1)
      for (let count = 1; count < nodes.length; count++) {
        await node!.apiKeys.create({ name: 'k', role: 'admin' }, ALICE)
      }
      const { items } = await node!.apiKeys.list()
      expect(items).toHaveLength(nodes.length)
      const revoked = await Promise.all(
        nodes.map(({ apiKeys }, index) => codeOf(apiKeys.revoke(items[index]!.id, ALICE))),
      )
      expect(revoked.sort()).toEqual(['SLUICE_CONFLICT', 'no error', 'no error', 'no error'])
    })

    it('shows who follows the feed every change of 8 that write at the same time, as it is at last', async () => {
      const writers = await openAll(8)
      const reading = await database().open({ connections: 1 })
      const reader = await FeedReader.load(reading.feed)
      let isDone = false
      const following = (async (): Promise<void> => {
        while (!isDone) await reader.follow()
      })()
      await Promise.all(
        writers.map(async (writer, number) => {
          for (let step = 0; step < 25; step++) {
            const entity = `u${(step * 3 + number) % 10}`
            const key = { dimension: 'user', entity, resource: '/orders' }
            if (step % 4 === 3) await writer.overrides.remove(key, BOB)
            else if (step % 10 === 0) await writer.versions.edit(() => ruleSetOf(number * 100 + step), BOB)
            else await writer.overrides.put(override(entity, number * 100 + step), BOB)
          }
        }),
      )
      isDone = true
      await following
      await reader.follow()
      const listed = await itemsOf((page) => reading.overrides.list(page))
      expect(reader.overrides).toEqual(listed.map(({ entry }) => entry))
      const { enforced } = await reading.versions.current()
      expect(reader.state.enforced).toEqual(await reading.versions.get(enforced!.number))
      expect(reader.position).toBe(await reading.feed.head())
      expect(reader.batches).toBeGreaterThan(2)
    })

    it('gives every node a hint of what another has changed', async () => {
      const [one, other] = await openAll(2)
      let hints = 0
      const stop = await other!.feed.watch(
        () => {
          hints++
        },
        () => undefined,
      )
      onTestFinished(stop)
      const before = await other!.feed.head()
      await one!.overrides.put(override('u1', 5), ALICE)
      await until('the other node has got the hint', () => hints >= 1)
      const { changes } = await other!.feed.since(before)
      expect(changes).toEqual([
        { kind: 'override', key: { dimension: 'user', entity: 'u1', resource: '/orders' }, entry: override('u1', 5) },
      ])
    })
  })
}
