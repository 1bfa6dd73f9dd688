import type { PolicyRequest, RuleSet } from '@sluice/core/policy'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigStore } from '../config-store.ts'
import { followConfig } from '../follow/follow-config.ts'
import type { ConfigStoreOptions } from '../open-config-store.ts'
import { engineNode } from '../scenarios/engine-node.test.support.ts'
import { temporaryFolder } from '../waiting.test.support.ts'
import { FeedReader } from './feed-reader.test.support.ts'

const ALICE = { name: 'alice' }
const BOB = { name: 'bob' }

const RULES: RuleSet = {
  rules: [
    { resource: '/orders/:id', dimension: 'user', limit: 10, window: '1m' },
    { resource: '*', dimension: 'ip', limit: 20, window: '1m' },
    { resource: '*', dimension: 'tenant+user', limit: 30, window: '1m' },
  ],
}

/** Requests that the entries of these tests are for. */
const REQUESTS: Readonly<Record<string, PolicyRequest>> = {
  user: { resource: '/orders/7', user: 'u1' },
  ipv4: { resource: '/', ip: '1.2.3.4' },
  ipv6: { resource: '/', ip: '2001:db8:0:1::7' },
  joint: { resource: '/', user: 'u2', tenant: 't2' },
}

/** A node that follows the store, and what it enforces. */
class Node {
  readonly #parts = engineNode()
  readonly #follower

  constructor(store: ConfigStore) {
    this.#follower = followConfig({ feed: store.feed, target: this.#parts.target })
    onTestFinished(() => this.#follower.close())
  }

  static async started(store: ConfigStore): Promise<Node> {
    const node = new Node(store)
    await node.#follower.ready()
    return node
  }

  /** The limit that each of the requests meets, or that it is blocked. */
  async enforced(): Promise<Readonly<Record<string, number | 'blocked'>>> {
    await this.#follower.refresh()
    const { engine } = this.#parts
    return Object.fromEntries(
      Object.entries(REQUESTS).map(([name, request]) => {
        const { reason, limit } = engine.check({ ...request, cost: 0 })
        return [name, reason === 'blocked' ? reason : limit]
      }),
    )
  }
}

/** What is one entry to an engine is one entry, however it is spelled. */
export function describeSpellings(open: (options?: ConfigStoreOptions) => Promise<ConfigStore>): void {
  describe('entries in several spellings', () => {
    const override = (resource: string, limit: number) => ({
      dimension: 'user',
      entity: 'u1',
      resource,
      terms: { limit },
    })

    it('are one: a node that runs enforces what one does that starts now', async () => {
      const store = await open()
      await store.versions.edit(() => RULES, ALICE)
      const running = await Node.started(store)
      const both = async (): Promise<unknown> => {
        const [one, other] = [await running.enforced(), await (await Node.started(store)).enforced()]
        expect(one).toEqual(other)
        return one
      }
      const withoutEntries = { user: 10, ipv4: 20, ipv6: 20, joint: 30 }
      expect(await both()).toEqual(withoutEntries)

      // A name of a parameter, letters, slashes and codes make no difference to a resource.
      await store.overrides.put(override('/orders/:id', 60), ALICE)
      await store.overrides.put(override('/Orders/:order/', 50), BOB)
      expect(await both()).toMatchObject({ user: 50 })
      await store.overrides.putAll([override('/orders/:x', 40), override('/%6frders//:y', 45)], ALICE)
      expect(await both()).toMatchObject({ user: 45 })
      expect(await store.overrides.remove({ ...override('/orders/:any', 0) }, ALICE)).toBe(true)
      expect(await both()).toEqual(withoutEntries)
      expect(await store.overrides.remove(override('/orders/:id', 0), ALICE)).toBe(false)

      const every = (dimension: string, entity: string, limit: number) => ({
        dimension,
        entity,
        resource: '*',
        terms: { limit },
      })
      await store.overrides.put(every('ip', '1.2.3.4', 70), ALICE)
      await store.overrides.put(every('ip', '::ffff:1.2.3.4', 71), ALICE)
      await store.overrides.put(every('ip', '2001:db8:0:1::7', 80), ALICE)
      await store.overrides.put(every('ip', '2001:DB8:0:1::8', 81), ALICE)
      await store.overrides.put(every('tenant+user', '["t2","u2"]', 90), ALICE)
      expect(await both()).toMatchObject({ ipv4: 71, ipv6: 81 })
      await store.overrides.remove(every('ip', '::ffff:102:304', 0), ALICE)
      await store.overrides.remove(every('ip', '2001:db8:0:1::/64', 0), ALICE)
      await store.overrides.remove(every('user+tenant', '["t2","u2"]', 0), ALICE)
      expect(await both()).toEqual(withoutEntries)
      expect((await store.overrides.list()).items).toEqual([])
    })

    it('are one among blocks, and are lifted as one', async () => {
      const store = await open()
      await store.versions.edit(() => RULES, ALICE)
      const running = await Node.started(store)
      const both = async (): Promise<unknown> => {
        const [one, other] = [await running.enforced(), await (await Node.started(store)).enforced()]
        expect(one).toEqual(other)
        return one
      }
      const until = 4_000_000_000_000
      const block = { until, strikes: 1, forgottenAt: until }
      await store.blocks.put({ dimension: 'ip', entity: '2001:db8:0:1::7', ...block }, ALICE)
      await store.blocks.put({ dimension: 'ip', entity: '2001:db8:0:1:0:0:0:7', ...block, strikes: 2 }, ALICE)
      expect(await both()).toMatchObject({ ipv6: 'blocked' })
      expect((await store.blocks.list()).items).toHaveLength(1)
      await store.blocks.remove({ dimension: 'ip', entity: '2001:db8:0:1::9' }, ALICE)
      expect(await both()).toMatchObject({ ipv6: 20 })
    })

    it('are found by each of them, and kept as they were last written', async () => {
      const store = await open()
      const first = await store.overrides.put(override('/orders/:id', 60), ALICE)
      expect(first.replaced).toBe(undefined)
      const second = await store.overrides.put(override('/Orders/:order', 50), BOB, { ifRevision: first.revision })
      expect(second.replaced).toEqual(first)
      const found = await store.overrides.get(override('/ORDERS/:x/', 0))
      expect(found).toMatchObject({
        entry: override('/Orders/:order', 50),
        revision: second.revision,
        changedBy: 'bob',
      })
      await store.overrides.put({ ...override('*', 5), dimension: 'ip', entity: '2001:db8::1' }, ALICE)
      await store.overrides.put({ ...override('*', 5), dimension: 'tenant+user', entity: 'x' }, ALICE)
      const listed = async (filter: object): Promise<readonly string[]> =>
        (await store.overrides.list(filter)).items.map(({ entry }) => `${entry.dimension} ${entry.entity}`)
      expect(await listed({ dimension: 'ip', entity: '2001:DB8:0:0::2' })).toEqual(['ip 2001:db8::1'])
      expect(await listed({ entity: '2001:DB8:0:0::2' })).toEqual(['ip 2001:db8::1'])
      expect(await listed({ dimension: 'tenant+user' })).toEqual(['tenant+user x'])
      expect(await listed({ dimension: 'user+tenant' })).toEqual(['tenant+user x'])
      expect(await listed({ dimension: 'user+tenant', entity: 'x' })).toEqual(['tenant+user x'])
      const conflict = store.overrides.remove(override('/orders/:z', 0), ALICE, { ifRevision: first.revision })
      await expect(conflict).rejects.toMatchObject({ code: 'SLUICE_CONFLICT' })
    })

    it('have one key in the change feed', async () => {
      const store = await open()
      const reader = await FeedReader.load(store.feed)
      await store.overrides.put(override('/orders/:id', 60), ALICE)
      await reader.follow()
      await store.overrides.put(override('/Orders/:order', 50), ALICE)
      await reader.follow()
      expect(reader.overrides).toEqual([override('/Orders/:order', 50)])
      await store.overrides.remove(override('/orders/:x', 0), ALICE)
      await reader.follow()
      expect(reader.overrides).toEqual([])
    })

    it('are gone from the cache file of a node when one of them is removed', async () => {
      const store = await open()
      await store.versions.edit(() => RULES, ALICE)
      const path = `${await temporaryFolder()}/cache`
      const node = engineNode()
      const follower = followConfig({ feed: store.feed, target: node.target, cache: { path } })
      await follower.ready()
      await store.overrides.put(override('/orders/:id', 60), ALICE)
      await follower.refresh()
      await store.overrides.put(override('/Orders/:order', 50), ALICE)
      await follower.refresh()
      await store.overrides.remove(override('/orders/:id', 0), ALICE)
      await follower.refresh()
      await follower.close()
      const away = engineNode()
      const feed = (): Promise<never> => Promise.reject(new Error('away'))
      const fromDisk = followConfig({ feed, target: away.target, cache: { path } })
      onTestFinished(() => fromDisk.close())
      await fromDisk.ready()
      expect(away.engine.entries.sizes.overrides).toBe(0)
    })

    it('differ by networks of the size that the store was opened with', async () => {
      const store = await open({ ipv6PrefixLength: 128 })
      const of = (entity: string) => ({ ...override('*', 5), dimension: 'ip', entity })
      await store.overrides.put(of('2001:db8::1'), ALICE)
      await store.overrides.put(of('2001:db8::2'), ALICE)
      await store.overrides.put(of('2001:db8::0:2'), ALICE)
      expect((await store.overrides.list()).items).toHaveLength(2)
    })

    it('are not followed by an engine that counts by other networks', async () => {
      const store = await open({ ipv6PrefixLength: 56 })
      const follower = followConfig({ feed: store.feed, target: engineNode().target })
      onTestFinished(() => follower.close())
      const refreshed = follower.refresh()
      await expect(refreshed).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION', received: 56, expected: '64' })
      await expect(refreshed).rejects.toThrow('Open the configuration store with "ipv6PrefixLength" 64.')
    })
  })
}
