import { pollUntil } from '../process/poll-until.ts'
import type { RedisServer } from './redis-server.ts'

/** Slots from the first to the last, both included. */
export type SlotRange = readonly [first: number, last: number]

/** What the nodes of a cluster know about one of them. */
export interface NodeView {
  readonly id: string
  readonly port: number
  /** The id of its master, when it is a replica. */
  readonly masterId: string | undefined
  /** What it serves; a slot on its way to another node is still counted here. Empty for a replica. */
  readonly slots: readonly SlotRange[]
}

/** Reads the text of CLUSTER NODES. */
export function parseView(text: string): readonly NodeView[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [id = '', address = '', , master = '-', , , , , ...slots] = line.split(' ')
      return {
        id,
        port: Number(/:(\d+)/.exec(address)?.[1]),
        masterId: master === '-' ? undefined : master,
        // [93->-id] and [93-<-id] are slots on their way.
        slots: slots.filter((range) => !range.startsWith('[')).map(parseRange),
      }
    })
    .sort((one, other) => one.port - other.port)
}

function parseRange(text: string): SlotRange {
  const [first, last = first] = text.split('-').map(Number)
  return [first!, last!]
}

/** Whether a node serves a slot. */
export function serves({ slots }: Pick<NodeView, 'slots'>, slot: number): boolean {
  return slots.some(([first, last]) => first <= slot && slot <= last)
}

/** What one node knows about all, itself included, by port. */
export async function viewOf(server: RedisServer): Promise<readonly NodeView[]> {
  return parseView(String(await server.command('CLUSTER', 'NODES')))
}

/** What the nodes have to agree on. */
export interface Agreement {
  /** The rest of a sentence that begins with "waited for the nodes". */
  readonly what: string
  readonly holds: (view: readonly NodeView[]) => boolean
}

/**
 * Waits until these nodes tell the same about all nodes, and that this holds, that the cluster serves all slots, and
 * that each replica among them has its master's data. Since each knows about itself, what all tell is so.
 */
export function untilAgreed(servers: readonly RedisServer[], { what, holds }: Agreement): Promise<readonly NodeView[]> {
  let seen: readonly string[] = []
  return pollUntil(
    async () => {
      const views = await Promise.all(servers.map(viewIfServing))
      seen = views.map((view, index) => `${servers[index]?.port}: ${JSON.stringify(view) ?? 'does not serve'}`)
      const [first] = views
      const isAgreed = first !== undefined && views.every((view) => JSON.stringify(view) === JSON.stringify(first))
      return isAgreed && holds(first) ? first : undefined
    },
    { what: `the nodes ${what}`, explain: () => `At last:\n${seen.join('\n')}` },
  )
}

async function viewIfServing(server: RedisServer): Promise<readonly NodeView[] | undefined> {
  const connection = await server.connect()
  try {
    const [info, role, nodes] = await Promise.all([
      connection.send('CLUSTER', 'INFO'),
      connection.send('ROLE'),
      connection.send('CLUSTER', 'NODES'),
    ])
    const [kind, , , link] = role as readonly unknown[]
    const isServing = String(info).includes('cluster_state:ok') && (kind === 'master' || link === 'connected')
    return isServing ? parseView(String(nodes)) : undefined
  } finally {
    await connection.close()
  }
}
