import { describe, expect, it } from 'vitest'
import { TestCluster } from './cluster-alerts.test.support.ts'

// Conditions over the calls of all nodes together. The threshold is one failed call of a hundred.

const NODES = 4

function clusterOf(count = NODES): TestCluster {
  return new TestCluster(count, { isOverAllNodes: true })
}

describe('a condition over all nodes', () => {
  it('is measured over the calls of all, and reported once', async () => {
    const cluster = clusterOf()
    await cluster.seconds(10)
    // 4 of 400 are not above the threshold, 8 of 400 are.
    cluster.node(1).storeCalls = { hits: 4, total: 100 }
    await cluster.seconds(20)
    expect(cluster.told).toEqual([])
    cluster.node(2).storeCalls = { hits: 4, total: 100 }
    await cluster.seconds(20)
    expect(cluster.told).toEqual(['id1_firing'])
    for (const node of cluster.nodes) {
      expect(node.alerts!.list()).toMatchObject([{ scope: 'cluster', value: 0.02, state: 'firing' }])
    }
    expect(cluster.node(3).alerts!.list()[0]!.summary).toContain('(4 nodes together)')
    expect(Object.keys(cluster.state.holders['store-errors']!)).toHaveLength(NODES)
  })

  it('is not late when the node that opened the alert dies, and is resolved by the others', async () => {
    const cluster = clusterOf()
    await cluster.seconds(10)
    cluster.node(2).fails = true
    cluster.node(3).fails = true
    await cluster.seconds(10)
    const [opener] = cluster.deliveries
    const dead = cluster.nodes.find(({ name }) => name === opener!.node)!
    cluster.crash(dead)
    await cluster.seconds(100)
    expect(cluster.told).toEqual(['id1_firing'])
    for (const node of cluster.nodes) node.fails = false
    await cluster.seconds(100)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  })

  it('counts a node that died for 15 seconds more, and one that stopped not at all', async () => {
    const cluster = clusterOf(2)
    await cluster.seconds(10)
    cluster.node(2).fails = true
    await cluster.seconds(6)
    const nodesOf = (): number => cluster.node(1).shared!.total(cluster.node(1).signals)!.nodes
    cluster.crash(cluster.node(2))
    await cluster.seconds(10)
    expect(nodesOf()).toBe(2)
    await cluster.seconds(10)
    expect(nodesOf()).toBe(1)
    cluster.start(cluster.node(2))
    await cluster.seconds(6)
    expect(nodesOf()).toBe(2)
    await cluster.node(2).shared!.close()
    cluster.crash(cluster.node(2))
    await cluster.seconds(6)
    expect(nodesOf()).toBe(1)
  })

  it('is not reported by a node that has just started and knows only its own calls', async () => {
    const cluster = clusterOf()
    await cluster.seconds(10)
    cluster.crash(cluster.node(1))
    cluster.node(1).storeCalls = { hits: 3, total: 100 }
    cluster.start(cluster.node(1))
    await cluster.seconds(30)
    expect(cluster.told).toEqual([])
  })

  it('is reported by each node under one id when nothing shared is reachable, with what was counted', async () => {
    const cluster = clusterOf(2)
    await cluster.seconds(10)
    for (const node of cluster.nodes) {
      node.isConnected = false
      node.fails = true
    }
    await cluster.seconds(60)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing'])
    expect(cluster.node(1).alerts!.list()[0]!.summary).toContain('counted on this node only')
    for (const node of cluster.nodes) {
      node.isConnected = true
      node.fails = false
    }
    await cluster.seconds(90)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing', 'id1_resolved'])
  })
})

describe('the store of one node', () => {
  /** 200 calls of the others for each of its own, so that its failures are not the deployment's. */
  async function oneOfMany(): Promise<TestCluster> {
    const cluster = clusterOf(3)
    for (const number of [2, 3]) cluster.node(number).storeCalls = { hits: 0, total: 10_000 }
    await cluster.seconds(10)
    cluster.node(1).fails = true
    return cluster
  }

  it('is reported after 30 seconds, as an alert of that node that every node lists', async () => {
    const cluster = await oneOfMany()
    await cluster.seconds(29)
    expect(cluster.told).toEqual([])
    await cluster.seconds(10)
    expect(cluster.told).toHaveLength(1)
    for (const node of cluster.nodes) {
      expect(node.alerts!.list()).toMatchObject([
        { scope: 'node', node: 'node-1', rule: 'store-errors', state: 'firing' },
      ])
    }
    expect(cluster.node(1).alerts!.list('own')).toHaveLength(1)
    expect(cluster.node(2).alerts!.list('own')).toEqual([])
  })

  it('is acknowledged and silenced on any node, and its own node keeps to it', async () => {
    const cluster = new TestCluster(3, { isOverAllNodes: true, remindEverySeconds: 60 })
    for (const number of [2, 3]) cluster.node(number).storeCalls = { hits: 0, total: 10_000 }
    cluster.node(1).fails = true
    await cluster.seconds(45)
    const { id } = cluster.node(3).alerts!.list()[0]!
    expect(await cluster.node(3).alerts!.acknowledge(id, { by: 'ada' })).toMatchObject({ acknowledgedBy: 'ada' })
    await cluster.seconds(6)
    for (const node of cluster.nodes) expect(node.alerts!.list()).toMatchObject([{ acknowledgedBy: 'ada' }])
    await cluster.seconds(200)
    expect(cluster.told).toEqual([`${id}_firing`])
    await cluster.node(2).alerts!.silence(id, { by: 'bob', durationMs: 3_600_000 })
    cluster.node(1).fails = false
    await cluster.seconds(30)
    expect(cluster.node(1).alerts!.list()).toMatchObject([{ state: 'resolved', silencedBy: 'bob' }])
    expect(cluster.told).toEqual([`${id}_firing`])
  })

  it('is not reported beside an outage of all', async () => {
    const cluster = clusterOf(3)
    await cluster.seconds(10)
    for (const node of cluster.nodes) node.fails = true
    await cluster.seconds(120)
    expect(cluster.told).toEqual(['id1_firing'])
  })

  it('is resolved by another node when its own is gone', async () => {
    const cluster = await oneOfMany()
    await cluster.seconds(45)
    cluster.crash(cluster.node(1))
    await cluster.seconds(90)
    expect(cluster.told.map((id) => id.split('_')[1])).toEqual(['firing', 'resolved'])
    expect(cluster.node(2).alerts!.list()).toMatchObject([{ scope: 'node', state: 'resolved' }])
    expect(cluster.state.holders).toEqual({})
  })
})
