import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TestCluster } from './cluster-alerts.test.support.ts'

/** A cluster in which calls of the store fail on these nodes. */
function failing(count: number, numbers: readonly number[], options = {}): TestCluster {
  const cluster = new TestCluster(count, options)
  for (const number of numbers) cluster.node(number).fails = true
  return cluster
}

function end(cluster: TestCluster): void {
  for (const node of cluster.nodes) node.fails = false
}

describe('an alert of the cluster', () => {
  it('is sent once when all nodes see it, and once when it is resolved', async () => {
    const cluster = failing(3, [1, 2, 3])
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing'])
    for (const node of cluster.nodes) expect(cluster.listed(node)).toEqual(['id1 firing'])
    end(cluster)
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
    for (const node of cluster.nodes) expect(cluster.listed(node)).toEqual(['id1 resolved'])
    expect(cluster.state.outbox).toEqual([])
    expect(cluster.state.holders).toEqual({})
  })

  it('is sent once by twenty nodes that see it in the same second', async () => {
    const cluster = failing(
      20,
      Array.from({ length: 20 }, (_, index) => index + 1),
    )
    await cluster.seconds(20)
    expect(cluster.told).toEqual(['id1_firing'])
    expect(Object.keys(cluster.state.holders['store-errors']!)).toHaveLength(20)
  })

  it('begins with the first node and is over with the last', async () => {
    const cluster = failing(3, [2])
    await cluster.seconds(10)
    cluster.node(1).fails = true
    cluster.node(2).fails = false
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing'])
    cluster.node(1).fails = false
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
    expect(cluster.node(3).alerts!.list()).toMatchObject([
      { id: 'id1', rule: 'store-errors', scope: 'cluster', node: 'node-2', state: 'resolved', value: 0.5 },
    ])
  })

  it('is another one when it comes back', async () => {
    const cluster = failing(2, [1])
    await cluster.seconds(10)
    end(cluster)
    await cluster.seconds(20)
    cluster.node(2).fails = true
    await cluster.seconds(10)
    const [first, , second] = cluster.told.map((id) => id.split('_')[0])
    expect(cluster.told).toEqual([`${first}_firing`, `${first}_resolved`, `${second}_firing`])
    expect(second).not.toBe(first)
  })

  it('writes nothing while nothing happens', async () => {
    const cluster = new TestCluster(3)
    await cluster.seconds(10)
    const { writes } = cluster
    await cluster.seconds(300)
    expect(cluster.writes).toBe(writes)
  })

  it('is acknowledged and silenced on any node', async () => {
    const cluster = failing(3, [1], { remindEverySeconds: 20 })
    await cluster.seconds(25)
    expect(cluster.told).toEqual(['id1_firing', 'id1_reminder_1'])
    const other = cluster.node(3).alerts!
    expect(await other.acknowledge('id1', { by: 'ada', note: 'on it' })).toMatchObject({ acknowledgedBy: 'ada' })
    await cluster.seconds(60)
    expect(cluster.told).toHaveLength(2)
    expect(cluster.node(1).alerts!.list()).toMatchObject([{ acknowledgedBy: 'ada', acknowledgedNote: 'on it' }])
    expect(await cluster.node(2).alerts!.silence('id1', { by: 'bob', durationMs: 60_000 })).toMatchObject({
      silencedBy: 'bob',
    })
    end(cluster)
    await cluster.seconds(50)
    expect(cluster.told).toHaveLength(2)
    await cluster.seconds(20)
    expect(cluster.told.slice(2)).toEqual(['id1_resolved'])
    expect(await other.acknowledge('other', { by: 'ada' })).toBeUndefined()
    expect(await other.silence('other', { by: 'ada', durationMs: 1 })).toBeUndefined()
  })

  it('is acknowledged while the document cannot be reached, and the others hear of it later', async () => {
    const cluster = failing(2, [1])
    await cluster.seconds(10)
    for (const node of cluster.nodes) node.isConnected = false
    expect(await cluster.node(2).alerts!.acknowledge('id1', { by: 'ada' })).toMatchObject({ acknowledgedBy: 'ada' })
    await cluster.seconds(3)
    for (const node of cluster.nodes) node.isConnected = true
    await cluster.seconds(10)
    expect(cluster.node(1).alerts!.list()).toMatchObject([{ acknowledgedBy: 'ada' }])
    expect(cluster.told).toEqual(['id1_firing'])
  })
})

describe('a message', () => {
  it('is delivered by another node when its own dies before, under the same id', async () => {
    const cluster = failing(3, [1, 2, 3])
    cluster.isReceiverUp = false
    await cluster.seconds(2)
    const [claimed] = cluster.state.outbox
    const owner = cluster.nodes.find(({ name }) => name === claimed!.node)!
    cluster.crash(owner, { losesFolder: true })
    cluster.isReceiverUp = true
    await cluster.seconds(58)
    expect(cluster.told).toEqual([])
    await cluster.seconds(10)
    expect(cluster.deliveries).toMatchObject([{ id: 'id1_firing' }])
    expect(cluster.deliveries[0]!.node).not.toBe(owner.name)
    await cluster.seconds(120)
    expect(cluster.told).toEqual(['id1_firing'])
  })

  it('comes twice under the same id when its node dies after delivery, before it could say so', async () => {
    const cluster = failing(2, [1, 2])
    await cluster.look()
    cluster.deliver()
    expect(cluster.told).toEqual(['id1_firing'])
    const owner = cluster.nodes.find(({ name }) => name === cluster.deliveries[0]!.node)!
    cluster.crash(owner, { losesFolder: true })
    await cluster.seconds(120)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing'])
  })

  it('stays with a node that is started again within a minute', async () => {
    const cluster = failing(2, [1, 2])
    cluster.isReceiverUp = false
    await cluster.seconds(5)
    const owner = cluster.nodes.find(({ name }) => name === cluster.state.outbox[0]!.node)!
    cluster.crash(owner)
    await cluster.seconds(30)
    cluster.start(owner)
    await cluster.seconds(30)
    cluster.isReceiverUp = true
    await cluster.seconds(120)
    expect(cluster.deliveries).toMatchObject([{ id: 'id1_firing', node: owner.name }])
  })

  it('stays with its node for as long as the receiver is down', async () => {
    const cluster = failing(3, [1, 2, 3])
    cluster.isReceiverUp = false
    await cluster.seconds(600)
    end(cluster)
    await cluster.seconds(60)
    cluster.isReceiverUp = true
    await cluster.seconds(10)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  })

  it('waits for an channel that takes none', async () => {
    const cluster = failing(1, [1])
    cluster.node(1).channel.takes = false
    await cluster.seconds(10)
    cluster.node(1).channel.takes = true
    await cluster.seconds(10)
    expect(cluster.told).toEqual(['id1_firing'])
  })
})

describe('a node whose condition holds', () => {
  it('and that dies ends its alert after a minute, when it was the last', async () => {
    const cluster = failing(3, [1])
    await cluster.seconds(10)
    cluster.crash(cluster.node(1), { losesFolder: true })
    await cluster.seconds(45)
    expect(cluster.told).toEqual(['id1_firing'])
    await cluster.seconds(25)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  })

  it('goes on with the same alert after a restart', async () => {
    const cluster = failing(2, [1])
    await cluster.seconds(10)
    cluster.crash(cluster.node(1))
    await cluster.seconds(20)
    cluster.start(cluster.node(1))
    await cluster.seconds(90)
    expect(cluster.told).toEqual(['id1_firing'])
    end(cluster)
    await cluster.seconds(20)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  })
})

describe('while the document cannot be reached', () => {
  it('by any node for less than 30 seconds, an alert waits and is sent once', async () => {
    const cluster = new TestCluster(3)
    await cluster.seconds(10)
    for (const node of cluster.nodes) [node.isConnected, node.fails] = [false, true]
    await cluster.seconds(25)
    expect(cluster.told).toEqual([])
    for (const node of cluster.nodes) node.isConnected = true
    await cluster.seconds(60)
    expect(cluster.told).toEqual(['id1_firing'])
  })

  it('by any node for longer, each node sends it with the same id, and its end is sent once', async () => {
    const cluster = new TestCluster(3)
    await cluster.seconds(10)
    for (const node of cluster.nodes) [node.isConnected, node.fails] = [false, true]
    await cluster.seconds(60)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing', 'id1_firing'])
    expect(cluster.node(1).log.messages).toContain('cannot coordinate cluster alerts')
    for (const node of cluster.nodes) node.isConnected = true
    await cluster.seconds(30)
    expect(cluster.state.alerts).toMatchObject([{ id: 'id1', state: 'firing' }])
    expect(cluster.node(1).log.messages).toContain('cluster alerts are coordinated again')
    end(cluster)
    await cluster.seconds(30)
    expect(cluster.told.slice(3)).toEqual(['id1_resolved'])
  })

  it('by any node for long, a message stays with its node', async () => {
    const cluster = failing(3, [1, 2, 3])
    cluster.isReceiverUp = false
    await cluster.seconds(5)
    const [claimed] = cluster.state.outbox
    for (const node of cluster.nodes) node.isConnected = false
    await cluster.seconds(200)
    for (const node of cluster.nodes) node.isConnected = node.name !== claimed!.node
    await cluster.seconds(30)
    for (const node of cluster.nodes) node.isConnected = true
    await cluster.seconds(70)
    cluster.isReceiverUp = true
    await cluster.seconds(10)
    expect(cluster.deliveries).toMatchObject([{ id: 'id1_firing', node: claimed!.node }])
  })

  it('a second alert has the same id on all nodes too, and the next one after it another', async () => {
    const cluster = new TestCluster(2)
    await cluster.seconds(10)
    for (const node of cluster.nodes) [node.isConnected, node.fails] = [false, true]
    await cluster.seconds(40)
    end(cluster)
    await cluster.seconds(10)
    for (const node of cluster.nodes) node.fails = true
    await cluster.seconds(10)
    const ids = [...new Set(cluster.told)]
    expect(ids).toEqual(['id1_firing', 'id1_resolved', expect.stringMatching(/^[0-9a-f]{16}_firing$/)])
    expect(cluster.told).toHaveLength(6)
    for (const node of cluster.nodes) node.isConnected = true
    await cluster.seconds(10)
    end(cluster)
    await cluster.seconds(20)
    expect(cluster.told.slice(6)).toEqual([ids[2]!.replace('firing', 'resolved')])
    cluster.node(2).fails = true
    await cluster.seconds(10)
    expect(new Set(cluster.told).size).toBe(5)
    expect(cluster.told).toHaveLength(8)
  })

  it('by one node, that node tells what concerns it alone', async () => {
    const cluster = new TestCluster(3)
    await cluster.seconds(10)
    const [cut] = cluster.nodes
    cut!.isConnected = false
    cut!.fails = true
    await cluster.seconds(60)
    expect(cluster.deliveries).toMatchObject([{ id: 'id1_firing', node: 'node-1' }])
    cut!.isConnected = true
    await cluster.seconds(10)
    for (const node of cluster.nodes) expect(cluster.listed(node)).toEqual(['id1 firing'])
    cut!.fails = false
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  })

  it('by one node, and others see the condition as well: its own alert ends where it comes back', async () => {
    const cluster = new TestCluster(3)
    await cluster.seconds(10)
    const [cut] = cluster.nodes
    cut!.isConnected = false
    for (const node of cluster.nodes) node.fails = true
    await cluster.seconds(60)
    // Both are the next alert of the cluster, and so the same.
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing'])
    cut!.isConnected = true
    await cluster.seconds(10)
    end(cluster)
    await cluster.seconds(30)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing', 'id1_resolved'])
  })

  it('by one node at a second alert: the one that only it knows ends where it comes back', async () => {
    const cluster = new TestCluster(2)
    await cluster.seconds(10)
    const [cut, other] = cluster.nodes
    cut!.isConnected = false
    cut!.fails = true
    await cluster.seconds(40)
    cut!.fails = false
    await cluster.seconds(10)
    cut!.fails = true
    await cluster.seconds(5)
    other!.fails = true
    await cluster.seconds(10)
    cut!.isConnected = true
    await cluster.seconds(20)
    end(cluster)
    await cluster.seconds(30)
    const ended = cluster.told.filter((id) => id.endsWith('_resolved'))
    const begun = new Set(cluster.told.filter((id) => id.endsWith('_firing')))
    expect(new Set(ended.map((id) => id.replace('_resolved', '_firing')))).toEqual(begun)
    expect(cluster.state.alerts.every(({ state }) => state === 'resolved')).toBe(true)
  })

  it('a node that is restarted has the id that it knew before', async () => {
    const cluster = new TestCluster(2)
    await cluster.seconds(10)
    for (const node of cluster.nodes) node.isConnected = false
    cluster.crash(cluster.node(1))
    cluster.start(cluster.node(1))
    for (const node of cluster.nodes) node.fails = true
    await cluster.seconds(60)
    expect(cluster.told).toEqual(['id1_firing', 'id1_firing'])
  })
})

it('rewrites the document when it is lost', async () => {
  const cluster = failing(2, [1])
  await cluster.seconds(10)
  cluster.loseDocument()
  await cluster.seconds(90)
  expect(cluster.state.alerts).toMatchObject([{ id: 'id1', state: 'firing' }])
  end(cluster)
  await cluster.seconds(30)
  expect(cluster.told).toEqual(['id1_firing', 'id1_resolved'])
  expect(cluster.state.outbox).toEqual([])
})

describe('whatever happens (property)', () => {
  const COUNT = 3
  const node = fc.integer({ min: 1, max: COUNT })
  const ACTIONS: Readonly<Record<string, (cluster: TestCluster, target: TestCluster['nodes'][number]) => void>> = {
    fail: (_, target) => {
      target.fails = true
    },
    recover: (_, target) => {
      target.fails = false
    },
    receiver: (cluster) => {
      cluster.isReceiverUp = !cluster.isReceiverUp
    },
    crash: (cluster, target) => cluster.crash(target),
    lose: (cluster, target) => cluster.crash(target, { losesFolder: true }),
    start: (cluster, target) => {
      if (target.alerts === undefined) cluster.start(target)
    },
    cut: (_, target) => {
      target.isConnected = false
    },
    join: (_, target) => {
      target.isConnected = true
    },
  }

  interface Step {
    readonly action: string
    readonly node: number
    readonly wait: number
  }

  const stepsOf = (...actions: readonly string[]): fc.Arbitrary<readonly Step[]> =>
    fc.array(fc.record({ action: fc.constantFrom(...actions), node, wait: fc.integer({ min: 1, max: 40 }) }), {
      minLength: 1,
      maxLength: 12,
    })

  /** Plays the steps, and lets everything be well again. */
  async function play(steps: readonly Step[], isOverAllNodes = false): Promise<TestCluster> {
    const cluster = new TestCluster(COUNT, { isOverAllNodes })
    await cluster.seconds(3)
    for (const step of steps) {
      ACTIONS[step.action]!(cluster, cluster.node(step.node))
      await cluster.seconds(step.wait)
    }
    cluster.isReceiverUp = true
    end(cluster)
    for (const each of cluster.nodes) {
      each.isConnected = true
      if (each.alerts === undefined) cluster.start(each)
    }
    await cluster.seconds(200)
    return cluster
  }

  it('without failures of nodes, every message comes once, the end after the beginning', async () => {
    await fc.assert(
      fc.asyncProperty(stepsOf('fail', 'recover', 'receiver'), fc.boolean(), async (steps, isOverAllNodes) => {
        const cluster = await play(steps, isOverAllNodes)
        expect(new Set(cluster.told).size).toBe(cluster.told.length)
        const { alerts, outbox, holders } = cluster.state
        expect([outbox, holders]).toEqual([[], {}])
        for (const { id, state } of alerts) {
          expect(state).toBe('resolved')
          expect(cluster.told).toContain(`${id}_firing`)
          expect(cluster.told.indexOf(`${id}_resolved`)).toBeGreaterThanOrEqual(cluster.told.indexOf(`${id}_firing`))
        }
      }),
      { numRuns: 60 },
    )
  })

  it('with failures, no message is lost, and nothing is left behind', async () => {
    await fc.assert(
      fc.asyncProperty(stepsOf(...Object.keys(ACTIONS)), fc.boolean(), async (steps, isOverAllNodes) => {
        const cluster = await play(steps, isOverAllNodes)
        const { alerts, outbox, holders } = cluster.state
        expect([outbox, holders]).toEqual([[], {}])
        for (const { id, state } of alerts) {
          expect(state).toBe('resolved')
          expect(cluster.told).toContain(`${id}_firing`)
          expect(cluster.told).toContain(`${id}_resolved`)
        }
        for (const each of cluster.nodes) expect(cluster.listed(each)).toEqual(cluster.listed(cluster.node(1)))
      }),
      { numRuns: 120 },
    )
  })
})
