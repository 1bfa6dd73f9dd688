import { seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { LiveEntries } from './live-entries.ts'
import type { Block } from './live-entry.ts'
import { OverrideScope } from './override-table.ts'

const createEntries = (nowMs = () => 0, lift: (block: Block) => void = () => undefined): LiveEntries =>
  new LiveEntries({
    random: seededRandom(1),
    clock: { nowMicros: () => nowMs() * 1000 },
    ipv6PrefixLength: 64,
    lift,
  })

const scope = new OverrideScope('user', '/orders')
const override = { dimension: 'user', entity: 'u1', resource: '/orders', terms: { limit: 5 } }
const member = { dimension: 'user', entity: 'u1', tier: 'premium' }

function block(entity: string, more: Partial<Block> = {}): Block {
  return { dimension: 'ip', entity, until: 100, strikes: 1, forgottenAt: 200, rule: 'login', ...more }
}

describe('live entries', () => {
  it('find overrides by dimension, entity and resource, and for every resource', () => {
    const live = createEntries()
    live.putOverride({ ...override, resource: '*', terms: { multiplier: 2 } })
    expect(live.overrideFor(scope, 'u1', 0)).toEqual({ multiplier: 2 })
    live.putOverride(override)
    expect(live.overrideFor(scope, 'u1', 0)).toEqual({ limit: 5 })
    expect(live.overrideFor(scope, 'u2', 0)).toBeUndefined()
    expect(live.removeOverride({ dimension: 'user', entity: 'u1', resource: '/ORDERS/' })).toBe(true)
    expect(live.removeOverride({ dimension: 'user', entity: 'u1', resource: '/orders' })).toBe(false)
    expect(live.overrideFor(scope, 'u1', 0)).toEqual({ multiplier: 2 })
  })

  it('find the tier of an entity until its membership expires or ends', () => {
    const live = createEntries()
    live.putMember({ ...member, expiresAt: 1000 })
    live.putMember({ ...member, dimension: 'tenant', tier: 'internal' })
    expect(live.tierOf('user', 'u1', 999)).toBe('premium')
    expect(live.tierOf('user', 'u2', 0)).toBeUndefined()
    expect(live.tierOf('apiKey', 'u1', 0)).toBeUndefined()
    expect(live.tierOf('user', 'u1', 1000)).toBeUndefined()
    expect(live.tierOf('tenant', 'u1', 1000)).toBe('internal')
    live.putMember({ ...member, dimension: 'tenant', tier: 'free' })
    expect(live.tierOf('tenant', 'u1', 1000)).toBe('free')
    expect(live.removeMember({ dimension: 'tenant', entity: 'u1' })).toBe(true)
    expect(live.removeMember({ dimension: 'tenant', entity: 'u1' })).toBe(false)
    expect(live.tierOf('tenant', 'u1', 1000)).toBeUndefined()
  })

  it('block an entity until the end of its block, and remember its strikes until it is forgotten', () => {
    let nowMs = 0
    const live = createEntries(() => nowMs)
    const given = block('1.2.3.4')
    live.putBlock(given)
    expect(live.blockOf('ip', '1.2.3.4', 99)).toBe(given)
    expect(live.strikesOf('ip', '1.2.3.4', 99)).toBe(given)
    nowMs = 99
    expect(live.blocks()).toEqual([given])
    expect(live.blockOf('ip', '1.2.3.4', 100)).toBeUndefined()
    nowMs = 100
    expect(live.blocks()).toEqual([])
    expect(live.strikesOf('ip', '1.2.3.4', 199)).toBe(given)
    expect(live.strikesOf('ip', '1.2.3.4', 200)).toBeUndefined()
    expect(live.sizes.blocks).toBe(0)
  })

  it('lift a block, in the store too while it runs', () => {
    const lifted: Block[] = []
    const live = createEntries(undefined, (each) => lifted.push(each))
    live.putBlock(block('1.2.3.4'))
    expect(live.removeBlock({ dimension: 'ip', entity: '1.2.3.4' })).toBe(true)
    expect(lifted).toEqual([block('1.2.3.4')])
    expect(live.blockOf('ip', '1.2.3.4', 0)).toBeUndefined()
    expect(live.strikesOf('ip', '1.2.3.4', 0)).toBeUndefined()
    expect(live.removeBlock({ dimension: 'ip', entity: '1.2.3.4' })).toBe(false)
  })

  it('say whether an incident is declared, and end it by itself', () => {
    const live = createEntries()
    expect(live.isIncident(0)).toBe(false)
    live.setIncident({ active: true, until: 1000 })
    expect(live.isIncident(999)).toBe(true)
    expect(live.isIncident(1000)).toBe(false)
    live.setIncident({ active: true })
    expect(live.isIncident(1e15)).toBe(true)
    live.setIncident({ active: false })
    expect(live.isIncident(0)).toBe(false)
  })

  it('say at once when there is nothing of a kind', () => {
    const live = createEntries()
    const flags = (): boolean[] => [live.hasOverrides, live.hasMembers, live.hasBlocks]
    expect(flags()).toEqual([false, false, false])
    live.putOverride(override)
    expect(flags()).toEqual([true, false, false])
    live.putMember(member)
    expect(flags()).toEqual([true, true, false])
    live.putBlock(block('1.2.3.4'))
    expect(flags()).toEqual([true, true, true])
    live.removeOverride({ dimension: 'user', entity: 'u1', resource: '/orders' })
    live.removeMember({ dimension: 'user', entity: 'u1' })
    live.removeBlock({ dimension: 'ip', entity: '1.2.3.4' })
    expect(flags()).toEqual([false, false, false])
  })

  it('count what there is', () => {
    const live = createEntries()
    live.putOverride(override)
    live.putOverride({ ...override, entity: 'u2' })
    live.putMember(member)
    for (const entity of ['a', 'b', 'c']) live.putBlock(block(entity))
    expect(live.sizes).toEqual({ overrides: 2, distinctTerms: 1, members: 1, blocks: 3, droppedBlocks: 0 })
  })

  it('hold 100,000 blocks of rules', () => {
    const live = createEntries()
    for (let index = 0; index < 100_001; index++) live.putOwnBlock(block(`a${index}`, { until: 100 + index }), 0)
    expect(live.sizes).toMatchObject({ blocks: 100_000, droppedBlocks: 1 })
    expect(live.blockOf('ip', 'a0', 0)).toBeUndefined()
    expect(live.blockOf('ip', 'a1', 0)).toBeDefined()
  })
})

describe('a reload of live entries', () => {
  function filled(): LiveEntries {
    const live = createEntries()
    for (const entity of ['u1', 'u2']) {
      live.putOverride({ ...override, entity })
      live.putMember({ ...member, entity })
      live.putBlock(block(entity))
    }
    live.setIncident({ active: true })
    return live
  }

  const found = (live: LiveEntries, entity: string): unknown[] => [
    live.overrideFor(scope, entity, 0)?.limit,
    live.tierOf('user', entity, 0),
    live.blockOf('ip', entity, 0)?.until,
  ]

  it('keeps everything in force until it ends, and then drops what did not come again', () => {
    const live = filled()
    live.beginReload()
    live.putOverride({ ...override, terms: { limit: 6 } })
    live.putMember({ ...member, tier: 'free' })
    live.putBlock(block('u1', { until: 150 }))
    expect(found(live, 'u1')).toEqual([6, 'free', 150])
    expect(found(live, 'u2')).toEqual([5, 'premium', 100])
    expect(live.isIncident(0)).toBe(true)
    live.endReload()
    expect(found(live, 'u1')).toEqual([6, 'free', 150])
    expect(found(live, 'u2')).toEqual([undefined, undefined, undefined])
    expect(live.isIncident(0)).toBe(false)
    expect(live.sizes).toMatchObject({ overrides: 1, members: 1, blocks: 1 })
  })

  it('keeps an incident that came again', () => {
    const live = filled()
    live.beginReload()
    live.setIncident({ active: true })
    live.endReload()
    expect(live.isIncident(0)).toBe(true)
  })

  it('that breaks off drops nothing, and can be restarted', () => {
    const live = filled()
    live.beginReload()
    live.putOverride(override)
    live.putMember(member)
    live.putBlock(block('u1'))
    live.setIncident({ active: true })
    live.beginReload()
    expect(found(live, 'u2')).toEqual([5, 'premium', 100])
    live.endReload()
    expect(live.sizes).toMatchObject({ overrides: 0, members: 0, blocks: 0 })
    expect(live.isIncident(0)).toBe(false)
  })

  it('that was not begun drops nothing', () => {
    const live = filled()
    live.endReload()
    expect(found(live, 'u2')).toEqual([5, 'premium', 100])
    expect(live.isIncident(0)).toBe(true)
  })

  it('leaves blocks alone that this process made, and takes removals while it is in progress', () => {
    const live = filled()
    live.putOwnBlock(block('own'), 0)
    live.beginReload()
    live.putOverride(override)
    live.removeOverride({ dimension: 'user', entity: 'u1', resource: '/orders' })
    live.endReload()
    expect(live.blockOf('ip', 'own', 0)).toBeDefined()
    expect(live.hasOverrides).toBe(false)
  })
})
