import { hash } from 'node:crypto'
import { isSluiceError } from '@sluice/core'
import type { StoreError } from '@sluice/core/internal'
import { outcomeUnknown, storeUnavailable } from '@sluice/core/internal'
import type { RedisArgument, RedisConnection } from './connection.ts'

/** A Lua script and the digest that the server knows it by. */
export interface Script {
  readonly name: string
  readonly body: string
  readonly digest: string
}

/** A script from its text. */
export function scriptOf(name: string, body: string): Script {
  return { name, body, digest: hash('sha1', body) }
}

/** Answers of a server begin with a code in capitals. So do OpenSSL's, which is followed by digits or a colon. */
const SERVER_CODE = /^[A-Z]{3,}(?= |$)/

/** The code that a server answered with, or undefined when the error is not an answer of a server. */
export function serverCodeOf(error: unknown): string | undefined {
  // Errors of sockets and of Node have a code of their own.
  if (!(error instanceof Error) || 'code' in error || 'errno' in error) return undefined
  return SERVER_CODE.exec(error.message)?.[0]
}

/** How often to look whether a connection is there. */
const LOOK_EVERY_MS = 2

/** Tries while a slot moves to another node; each waits a moment more. Nothing was done, so asking again is safe. */
const MOST_TRIES = 8

/**
 * Runs scripts by their digest. The text is sent only to a server that does not know it (after a restart, a failover, a
 * flush), and that is the only error after which the same call is sent again, besides `TRYAGAIN`, which says that nothing
 * was done because the keys are just moving: after any other, it may have happened.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  readonly #pause: (ms: number) => Promise<void>
  readonly #startWaitMs: number
  #wasReady = false

  /** Before the first connection is there, calls wait for it up to `startWaitMs`: nothing is wrong yet. */
  constructor(connection: RedisConnection, pause: (ms: number) => Promise<void>, startWaitMs = 0) {
    this.#connection = connection
    this.#pause = pause
    this.#startWaitMs = startWaitMs
  }

  /** Waits until there is a connection, for at most so long. Whether there is one. */
  async untilReady(withinMs: number): Promise<boolean> {
    for (let waitedMs = 0; !this.#connection.isReady() && waitedMs < withinMs; waitedMs += LOOK_EVERY_MS) {
      await this.#pause(LOOK_EVERY_MS)
    }
    return this.#connection.isReady()
  }

  /**
   * Runs a script on keys of one slot.
   *
   * @throws StoreError that says whether anything may have happened
   */
  async run(script: Script, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args]
    let head: readonly RedisArgument[] = ['EVALSHA', script.digest]
    for (let tries = 1; ; tries++) {
      try {
        return await this.command([...head, ...rest], keys[0]!)
      } catch (error) {
        const code = serverCodeOf((error as StoreError).cause ?? error)
        if (tries >= MOST_TRIES) throw error
        if (code === 'NOSCRIPT') head = ['EVAL', script.body]
        else if (code === 'TRYAGAIN') await this.#pause(tries)
        else throw error
      }
    }
  }

  /** Runs a script that answers with a string. Throws like {@link run}. */
  async runForBytes(script: Script, keys: readonly string[], args: readonly RedisArgument[]): Promise<Buffer> {
    const reply = await this.run(script, keys, args)
    if (Buffer.isBuffer(reply)) return reply
    throw outcomeUnknown({ because: 'refused', problem: `${script.name} answered with ${typeof reply}` })
  }

  /** Sends any one command. Throws like {@link run}. */
  async command(command: readonly RedisArgument[], key: string): Promise<unknown> {
    this.#wasReady ||= this.#connection.isReady() || (await this.#untilStarted())
    if (!this.#connection.isReady()) throw notConnected(this.#connection.obstacle?.())
    try {
      return await this.#connection.send(command, key)
    } catch (error) {
      throw failureFrom(error)
    }
  }

  async #untilStarted(): Promise<boolean> {
    if (this.#connection.obstacle?.() !== undefined) return false
    return await this.untilReady(this.#startWaitMs)
  }
}

function notConnected(obstacle: Error | undefined): Error {
  if (isSluiceError(obstacle)) return obstacle
  const because = obstacle === undefined ? '' : `: ${obstacle.message}`
  return storeUnavailable({
    because: 'unreachable',
    problem: `there is no connection to Redis${because}`,
    action: 'It is connected again by itself; see that the server runs and can be reached.',
    cause: obstacle,
  })
}

function failureFrom(error: unknown): Error {
  if (isSluiceError(error)) return error
  const code = serverCodeOf(error)
  if (code === undefined) {
    return outcomeUnknown({
      because: 'unreachable',
      problem: 'the connection to Redis broke while a call was under way',
      cause: error,
    })
  }
  return storeUnavailable({
    because: 'refused',
    problem: `Redis refused the call with ${code}`,
    action: ADVICE[code] ?? 'The cause of this error has the answer of the server.',
    cause: error,
  })
}

/** What to do about the answers that a limiter meets. */
const ADVICE: Readonly<Record<string, string>> = {
  OOM: 'Redis is out of memory: raise maxmemory, or give limits an instance of their own.',
  READONLY: 'This server is a replica: connect to the primary, through Sentinel or as a cluster.',
  LOADING: 'Redis is loading its data; it answers when it is done.',
  MISCONF: 'Redis cannot save to disk and refuses writes: see its log, or turn off stop-writes-on-bgsave-error.',
  NOAUTH: 'Give the client a user name and a password.',
  WRONGPASS: 'The user name or the password is not right.',
  NOPERM:
    'The user may not do this: allow EVAL, EVALSHA, MGET, SET, DEL, TIME and the commands on sorted sets and hashes.',
  MOVED: 'This server is a node of a cluster: use a cluster client, or `cluster: true` with the URL.',
  CLUSTERDOWN: 'Some slots of the cluster have no primary: see CLUSTER INFO.',
  MASTERDOWN: 'This replica has lost its primary: connect to the primary.',
  NOREPLICAS: 'Too few replicas are connected for writes (min-replicas-to-write).',
  BUSY: 'A script has been running too long on this server.',
}
