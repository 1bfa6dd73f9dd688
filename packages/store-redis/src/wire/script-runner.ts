import { isSluiceError } from '@sluice/core'
import { outcomeUnknown, storeUnavailable } from '@sluice/core/store'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { serverCodeOf } from '../connection/connection.ts'
import type { Script } from './scripts.ts'
import { PROBE_COMMANDS } from './scripts.ts'

/** Maximum attempts while a slot moves to another node. Nothing was executed, so a retry is safe. */
const MAX_ATTEMPTS = 8

/**
 * Runs scripts with EVALSHA. `NOSCRIPT` (after a restart, a failover or a flush) is retried with EVAL, and `TRYAGAIN`
 * (the slot is moving) after a pause: in both cases nothing was executed. After any other error the call is never
 * repeated, because it may have been executed.
 */
export class ScriptRunner {
  readonly #connection: RedisConnection
  readonly #pause: (ms: number) => Promise<void>

  constructor(connection: RedisConnection, pause: (ms: number) => Promise<void>) {
    this.#connection = connection
    this.#pause = pause
  }

  /**
   * Runs a script on keys of one slot.
   *
   * @throws StoreError that tells whether the script may have been executed
   */
  async run(script: Script, keys: readonly string[], args: readonly RedisArgument[]): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args]
    let head: readonly RedisArgument[] = ['EVALSHA', script.digest]
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#send([...head, ...rest], keys[0]!)
      } catch (error) {
        const code = attempt < MAX_ATTEMPTS ? serverCodeOf(error) : undefined
        if (code === 'NOSCRIPT') head = ['EVAL', script.body]
        else if (code === 'TRYAGAIN') await this.#pause(attempt)
        else throw failureFrom(error, this.#connection.isCluster)
      }
    }
  }

  /** Sends any command. Throws like {@link run}. */
  async command(command: readonly RedisArgument[], key: string): Promise<unknown> {
    try {
      return await this.#send(command, key)
    } catch (error) {
      throw failureFrom(error, this.#connection.isCluster)
    }
  }

  #send(command: readonly RedisArgument[], key: string): Promise<unknown> {
    if (!this.#connection.isReady()) throw notConnected(this.#connection.obstacle?.())
    return this.#connection.send(command, key)
  }
}

/** The reply of a script that returns a string. */
export function bytesOf(script: Script, reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  throw outcomeUnknown({ because: 'refused', problem: `the script ${script.name} returned ${typeof reply}` })
}

function notConnected(obstacle: Error | undefined): Error {
  if (isSluiceError(obstacle)) return obstacle
  const code = serverCodeOf(obstacle)
  return storeUnavailable({
    // A server that rejects the connection has been reached.
    because: code === undefined ? 'unreachable' : 'refused',
    problem: `there is no connection to Redis${obstacle === undefined ? '' : `: ${textOf(obstacle)}`}`,
    action: code === undefined ? obstacleAdvice(obstacle) : (ADVICE[code] ?? answerAdvice(obstacle!)),
    cause: obstacle,
  })
}

function failureFrom(error: unknown, isCluster: boolean): Error {
  if (isSluiceError(error)) return error
  const code = serverCodeOf(error)
  if (code === undefined) {
    return outcomeUnknown({
      because: 'unreachable',
      problem: 'the connection to Redis broke while a call was in flight',
      // Other nodes are not affected.
      partial: isCluster,
      cause: error,
    })
  }
  if (code === 'ERR' && SCRIPT_FAILED.test((error as Error).message)) {
    return outcomeUnknown({ because: 'refused', problem: `a script failed: ${textOf(error as Error)}`, cause: error })
  }
  return storeUnavailable({
    because: 'refused',
    problem: `Redis refused the call: ${textOf(error as Error)}`,
    // Only the slot that is moving is affected.
    partial: code === 'TRYAGAIN',
    action: ADVICE[code] ?? (FORBIDDEN_IN_SCRIPT.test((error as Error).message) ? ADVICE['NOPERM']! : SEE_SETTINGS),
    cause: error,
  })
}

/** The message of an error, as the start of a sentence. */
function textOf(error: Error): string {
  return error.message.replace(/[.?!]$/, '')
}

/** An error inside a script, after which its effects are unknown. Never seen outside of development. */
const SCRIPT_FAILED = /user_script:\d+: (?!.*can't run this command)/

/** How a server before 7.2 reports NOPERM for a command inside a script. */
const FORBIDDEN_IN_SCRIPT = /can't run this command/

/** Whether the user lacks the permission for a command or a key. */
export function isDenied(error: unknown): boolean {
  const answer = error instanceof Error ? (error.cause ?? error) : error
  if (serverCodeOf(answer) === 'NOPERM') return true
  return serverCodeOf(answer) !== undefined && FORBIDDEN_IN_SCRIPT.test((answer as Error).message)
}

/** What to do about an error reply without a specific code. */
function answerAdvice(error: Error): string {
  return TOO_MANY.test(error.message) ? 'Raise maxclients of the server, or close unused connections.' : SEE_SETTINGS
}

const TOO_MANY = /max number of clients/

const SEE_SETTINGS = 'Check the settings of the server and of the client.'

/** What to do when no server has replied, by the message of the client. */
const OBSTACLES: readonly { readonly sign: RegExp; readonly action: string }[] = [
  { sign: /altnames/i, action: 'Pass the name in its certificate as `tls: { servername }`.' },
  { sign: /certificate required|handshake failure/i, action: 'Pass your certificate as `tls: { cert, key }`.' },
  { sign: /certificate/i, action: 'Pass the certificate to trust as `tls: { ca }`.' },
  {
    // The other end closed the connection during the handshake, or does not speak the protocol.
    sign: /ECONNRESET|EPIPE|closed|hang up|RESP|wrong version number|packet length|not connected within/i,
    action: 'Check that Redis listens at this address, and with TLS only for rediss://.',
  },
]

function obstacleAdvice(obstacle: Error | undefined): string {
  const known = obstacle && OBSTACLES.find(({ sign }) => sign.test(obstacle.message))
  return `Sluice reconnects automatically. ${known?.action ?? 'Check that the server runs and can be reached.'}`
}

/** Every command that the store needs on every server: those of the probe script. */
export const NEEDED_COMMANDS: readonly string[] = [
  'EVAL',
  'EVALSHA',
  ...new Set([...PROBE_COMMANDS.body.matchAll(/call\('([A-Z]+)'/g)].map(([, command]) => command!)),
]

const NODE_OF_A_CLUSTER = 'This server is a node of a cluster: use a cluster client, or `cluster: true` with the URL.'

/** What to do about error replies, by code. */
const ADVICE: Readonly<Record<string, string>> = {
  OOM: 'Redis is out of memory: raise maxmemory, or use a separate instance for limits.',
  READONLY: 'This server is a replica: connect to the primary, through Sentinel or as a cluster.',
  LOADING: 'Redis is loading its data. It replies when it is done.',
  MISCONF: 'Redis cannot save to disk and rejects writes: check its log, or turn off stop-writes-on-bgsave-error.',
  DENIED: 'This server is in protected mode: set a password, or the addresses to listen at (bind).',
  NOAUTH: 'Configure the user name and password of the client.',
  WRONGPASS: 'Correct the user name and password of the client.',
  NOPERM: `Allow the user the keys that start with the prefix, and the commands ${NEEDED_COMMANDS.join(', ')}.`,
  MOVED: NODE_OF_A_CLUSTER,
  CROSSSLOT: NODE_OF_A_CLUSTER,
  CLUSTERDOWN: 'Some slots of the cluster have no primary: run CLUSTER INFO.',
  MASTERDOWN: 'This replica lost its primary: connect to the primary.',
  NOREPLICAS: 'Too few replicas are connected for writes (min-replicas-to-write).',
  BUSY: 'A script has been running too long on this server.',
}
