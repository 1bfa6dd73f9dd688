import { LOOPBACK } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { ServerError } from '../process/server-error.ts'
import type { RedisServer } from './redis-server.ts'
import { startRedis } from './redis-server.ts'

/** Options of a {@link SentinelGroup}. */
export interface SentinelOptions {
  /** Number of replicas. Default: 1. */
  readonly replicas?: number
  /** Number of sentinels. Default: 3; a majority must agree that the primary is down. */
  readonly sentinels?: number
  /** Milliseconds of silence after which the primary counts as down. Default: 500. */
  readonly downAfterMs?: number
}

const MASTER_NAME = 'sluice'

// After a fail-over, or an attempt, sentinels wait for twice this time before they begin another by themselves.
const FAILOVER_TIMEOUT_MS = 2000

// Sentinels look and talk once in 1 to 10 seconds, and do nothing for 30 seconds when they notice that they were held
// up; here they do it so often, and come back so soon, that tests need not wait for them. Some periods are used as
// patience too, and during a fail-over a sentinel looks only once a second:
// - after three INFO-PERIODs, a replica that was not looked at cannot be promoted;
// - after four PUBLISH-PERIODs, a sentinel that has not heard of a promotion takes it back.
const EAGERNESS = { 'INFO-PERIOD': 400, 'PUBLISH-PERIOD': 400, 'ASK-PERIOD': 100, 'TILT-PERIOD': 1000 }

/** A primary, its replicas, and their sentinels: real servers on 127.0.0.1 for tests. */
export class SentinelGroup {
  /** Name of the primary for clients that ask the sentinels. */
  readonly masterName: string = MASTER_NAME
  /** The initial primary. */
  readonly primary: RedisServer
  /** The initial replicas. */
  readonly replicas: readonly RedisServer[]
  /** The list of sentinels for clients: host and port of each. */
  readonly sentinels: readonly RedisServer[]

  private constructor(primary: RedisServer, replicas: readonly RedisServer[], sentinels: readonly RedisServer[]) {
    this.primary = primary
    this.replicas = replicas
    this.sentinels = sentinels
  }

  /** Starts all of them; resolves when the sentinels know each other and the replicas, and these have the data. */
  static async start(options: SentinelOptions = {}): Promise<SentinelGroup> {
    const { replicas = 1, sentinels = 3, downAfterMs = 500 } = options
    const started: RedisServer[] = []
    const start = async (config: Record<string, string>, ...args: string[]): Promise<RedisServer> => {
      const server = await startRedis({ config, args })
      started.push(server)
      return server
    }
    try {
      const primary = await start({})
      const watch = sentinelConfiguration(primary, { sentinels, downAfterMs })
      const [copies, watchers] = await Promise.all([
        startAll(replicas, () => start({ replicaof: `${LOOPBACK} ${primary.port}` })),
        startAll(sentinels, () => start(watch, '--sentinel')),
      ])
      const group = new SentinelGroup(primary, copies, watchers)
      await Promise.all(
        watchers.map((sentinel) => sentinel.command('SENTINEL', 'DEBUG', ...Object.entries(EAGERNESS).flat())),
      )
      await group.#untilPrimaryIs((server) => server === primary, 'to know the group')
      return group
    } catch (error) {
      await Promise.all(started.map((server) => server.close()))
      throw error
    }
  }

  /** The current primary, according to the first running sentinel. */
  async currentPrimary(): Promise<RedisServer> {
    const sentinel = this.#anySentinel()
    const [host, port] = (await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER_NAME)) as string[]
    const server = this.#servers.find((candidate) => candidate.port === Number(port))
    if (server !== undefined) return server
    const message = `the sentinel on port ${sentinel.port} names ${host}:${port}, which is not of this group.`
    throw new ServerError('SLUICE_TESTING_UNKNOWN_NODE', message)
  }

  /**
   * Promotes a replica, whether or not the primary runs. The sentinels do not wait for the last writes, and end the
   * connections of every server whose role they change. Resolves with the new primary when every sentinel names it and
   * every other running server is its replica and has its data.
   */
  async failover(): Promise<RedisServer> {
    const old = await this.currentPrimary()
    await pollUntil(() => beginFailover(this.#anySentinel()), { what: 'a sentinel to accept a fail-over' })
    return await this.untilFailedOver(old)
  }

  /** Waits for the sentinels' own failover of a stopped primary; resolves as {@link failover} does. */
  untilFailedOver(old: RedisServer): Promise<RedisServer> {
    return this.#untilPrimaryIs((server) => server !== old, `to replace the primary on port ${old.port}`)
  }

  /** Stops all servers and removes their files. May be called more than once. */
  async close(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.#servers].map((server) => server.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #servers(): readonly RedisServer[] {
    return [this.primary, ...this.replicas]
  }

  #anySentinel(): RedisServer {
    const sentinel = this.sentinels.find(isUp)
    if (sentinel !== undefined) return sentinel
    throw new ServerError('SLUICE_TESTING_NOT_RUNNING', 'no sentinel of the group runs. Restart one.')
  }

  #untilPrimaryIs(fits: (server: RedisServer) => boolean, what: string): Promise<RedisServer> {
    let seen: unknown
    return pollUntil(
      async () => {
        const opinions = await Promise.all(this.sentinels.filter(isUp).map(opinionOf))
        const sources = await Promise.all(this.#servers.filter(isUp).map(sourceOf))
        seen = { opinions, sources }
        const primary = this.#servers.find(({ port }) => port === opinions[0]?.primaryPort)
        if (primary === undefined || !fits(primary)) return undefined
        const expected: Opinion = {
          primaryPort: primary.port,
          flags: 'master',
          replicas: this.#servers.length - 1,
          otherSentinels: this.sentinels.length - 1,
        }
        const isAgreed = opinions.every((opinion) => JSON.stringify(opinion) === JSON.stringify(expected))
        const isFollowed = sources.every(
          ({ port, source }) => source === (port === primary.port ? 'none' : primary.port),
        )
        return isAgreed && isFollowed ? primary : undefined
      },
      { what: `the sentinels ${what}`, explain: () => `At last: ${JSON.stringify(seen)}` },
    )
  }
}

/** Starts a primary with replicas and sentinels for a test; see {@link SentinelGroup.start}. */
export function startSentinel(options: SentinelOptions = {}): Promise<SentinelGroup> {
  return SentinelGroup.start(options)
}

function sentinelConfiguration(
  primary: RedisServer,
  options: Required<Omit<SentinelOptions, 'replicas'>>,
): Record<string, string> {
  const quorum = Math.floor(options.sentinels / 2) + 1
  return {
    [`sentinel monitor ${MASTER_NAME}`]: `${LOOPBACK} ${primary.port} ${quorum}`,
    [`sentinel down-after-milliseconds ${MASTER_NAME}`]: String(options.downAfterMs),
    [`sentinel failover-timeout ${MASTER_NAME}`]: String(FAILOVER_TIMEOUT_MS),
  }
}

function startAll(count: number, start: () => Promise<RedisServer>): Promise<RedisServer[]> {
  return Promise.all(Array.from({ length: count }, start))
}

function isUp({ status }: RedisServer): boolean {
  return status === 'running'
}

/** The state of the group, according to a sentinel. */
interface Opinion {
  readonly primaryPort: number
  /** `master`, and more words while it is down or being replaced. */
  readonly flags: string
  readonly replicas: number
  readonly otherSentinels: number
}

async function opinionOf(sentinel: RedisServer): Promise<Opinion> {
  const pairs = (await sentinel.command('SENTINEL', 'MASTER', MASTER_NAME)) as readonly string[]
  const field = (name: string): string => pairs[pairs.indexOf(name) + 1] ?? ''
  return {
    primaryPort: Number(field('port')),
    flags: field('flags'),
    replicas: Number(field('num-slaves')),
    otherSentinels: Number(field('num-other-sentinels')),
  }
}

/** The port that a server has its data from: `none` for a primary, `nowhere` for a replica that is not connected. */
async function sourceOf(server: RedisServer): Promise<{ port: number; source: number | 'none' | 'nowhere' }> {
  const { port } = server
  try {
    const [role, , source, link] = (await server.command('ROLE')) as readonly unknown[]
    if (role === 'master') return { port, source: 'none' }
    return { port, source: link === 'connected' ? Number(source) : 'nowhere' }
  } catch (error) {
    // A sentinel that changes a server's role ends its connections, ours too.
    if ((error as { code?: unknown }).code === 'SLUICE_TESTING_NO_REPLY') return { port, source: 'nowhere' }
    throw error
  }
}

/**
 * True when the sentinel has begun; undefined when it cannot yet: one is in progress, or it has not looked at the
 * replica.
 */
async function beginFailover(sentinel: RedisServer): Promise<true | undefined> {
  try {
    await sentinel.command('SENTINEL', 'FAILOVER', MASTER_NAME)
    return true
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'NOGOODSLAVE' || code === 'INPROG') return undefined
    throw error
  }
}
