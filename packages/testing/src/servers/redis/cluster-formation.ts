import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { untilAgreed, viewOf } from './cluster-view.ts'
import type { RedisServer } from './redis-server.ts'
import { startRedis } from './redis-server.ts'
import { SLOT_COUNT } from './slot-migration.ts'

/** What {@link formCluster} makes. */
export interface ClusterPlan {
  readonly masters: number
  readonly replicasPerMaster: number
  readonly nodeTimeoutMs: number
  readonly config: Readonly<Record<string, string>>
}

interface StartedNode {
  readonly server: RedisServer
  readonly busPort: number
}

/**
 * Starts the nodes and makes them one cluster: the masters first in the list, then their replicas, in turn. Resolves
 * when all nodes know each other and serve all slots, which a new master does after 2 seconds.
 */
export async function formCluster(plan: ClusterPlan): Promise<readonly RedisServer[]> {
  const count = plan.masters * (1 + plan.replicasPerMaster)
  const starts = await Promise.allSettled(Array.from({ length: count }, () => startNode(plan)))
  const nodes = starts.filter((start) => start.status === 'fulfilled').map(({ value }) => value)
  const servers = nodes.map(({ server }) => server)
  try {
    const failed = starts.find((start) => start.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    await Promise.all(servers.map((server, index) => claim(server, index, plan.masters)))
    await introduce(nodes)
    await attachReplicas(servers, plan.masters)
    await untilAgreed(servers, { what: 'to become one cluster', holds: (view) => view.length === count })
    return servers
  } catch (error) {
    await Promise.all(servers.map((server) => server.close()))
    throw error
  }
}

function startNode({ nodeTimeoutMs, config }: ClusterPlan): Promise<StartedNode> {
  return onFreePorts(2, async ([port, busPort]) => {
    const server = await startRedis({
      port: port!,
      config: {
        'cluster-enabled': 'yes',
        'cluster-port': String(busPort),
        'cluster-node-timeout': String(nodeTimeoutMs),
        // Replicas stay where the test has put them.
        'cluster-allow-replica-migration': 'no',
        ...config,
      },
    })
    return { server, busPort: busPort! }
  })
}

/** A master takes its share of the slots; every node a rank of its own, so that they need not fight for one. */
async function claim(server: RedisServer, index: number, masters: number): Promise<void> {
  await server.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
  if (index >= masters) return
  const [first, end] = [index, index + 1].map((share) => Math.round((share * SLOT_COUNT) / masters))
  await server.command('CLUSTER', 'ADDSLOTSRANGE', first!, end! - 1)
}

/** Each node meets each other one: faster than waiting for rumours. */
async function introduce(nodes: readonly StartedNode[]): Promise<void> {
  await Promise.all(
    nodes.map(async ({ server }, index) => {
      for (const other of nodes.slice(index + 1)) {
        await server.command('CLUSTER', 'MEET', LOOPBACK, other.server.port, other.busPort)
      }
      await pollUntil(async () => ((await viewOf(server)).length === nodes.length ? true : undefined), {
        what: `the node on port ${server.port} to know the others`,
      })
    }),
  )
}

/** A replica can be attached once it knows its master by the name that the master goes by. */
async function attachReplicas(servers: readonly RedisServer[], masters: number): Promise<void> {
  const ids = await Promise.all(servers.slice(0, masters).map((server) => server.command('CLUSTER', 'MYID')))
  await Promise.all(
    servers.slice(masters).map(async (server, index) => {
      const id = String(ids[index % masters])
      await pollUntil(async () => ((await viewOf(server)).some((node) => node.id === id) ? true : undefined), {
        what: `the node on port ${server.port} to know its master`,
      })
      await server.command('CLUSTER', 'REPLICATE', id)
    }),
  )
}
