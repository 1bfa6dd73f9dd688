import { hash } from 'node:crypto'
import { isSluiceError } from '@sluice/core'
import type { StoreError } from '@sluice/core/internal'
import { outcomeUnknown, storeUnavailable } from '@sluice/core/internal'
import type { RedisArgument, RedisConnection } from '../connection/connection.ts'
import { PROBE_SCRIPT } from './scripts.ts'

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

  constructor(connection: RedisConnection, pause: (ms: number) => Promise<void>) {
    this.#connection = connection
    this.#pause = pause
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
    if (!this.#connection.isReady()) throw notConnected(this.#connection.obstacle?.())
    try {
      return await this.#connection.send(command, key)
    } catch (error) {
      throw failureFrom(error, this.#connection.isCluster)
    }
  }
}

function notConnected(obstacle: Error | undefined): Error {
  if (isSluiceError(obstacle)) return obstacle
  const code = serverCodeOf(obstacle)
  return storeUnavailable({
    // A server that turns us away has been reached.
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
      problem: 'the connection to Redis broke while a call was under way',
      // It was the connection to one of several nodes.
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
    // A slot that is on its way from node to node.
    partial: code === 'TRYAGAIN',
    action: ADVICE[code] ?? (FORBIDDEN_IN_SCRIPT.test((error as Error).message) ? ADVICE['NOPERM']! : SEE_SETTINGS),
    cause: error,
  })
}

/** The text of an error, to go on from in a sentence. */
function textOf(error: Error): string {
  return error.message.replace(/[.?!]$/, '')
}

/** A mistake in a script, found on its way: nobody knows how far it got. Never seen outside of development. */
const SCRIPT_FAILED = /user_script:\d+: (?!.*can't run this command)/

/** How a server before 7.2 says NOPERM of a command inside of a script. */
const FORBIDDEN_IN_SCRIPT = /can't run this command/

/** Whether a server has denied the user a command or a key. */
export function isDenied(error: unknown): boolean {
  const answer = error instanceof Error ? (error.cause ?? error) : error
  if (serverCodeOf(answer) === 'NOPERM') return true
  return serverCodeOf(answer) !== undefined && FORBIDDEN_IN_SCRIPT.test((answer as Error).message)
}

/** What to do about an answer that has no code of its own. */
function answerAdvice(error: Error): string {
  return TOO_MANY.test(error.message)
    ? 'Raise maxclients of the server, or close connections that nobody uses.'
    : SEE_SETTINGS
}

const TOO_MANY = /max number of clients/

const SEE_SETTINGS = 'See the settings of the server and of the client.'

/** What to do when no server has answered, by what the client says of it. */
const OBSTACLES: readonly { readonly sign: RegExp; readonly action: string }[] = [
  { sign: /altnames/i, action: 'give the name that is in its certificate as `tls: { servername }`.' },
  { sign: /certificate required|handshake failure/i, action: 'give your certificate as `tls: { cert, key }`.' },
  { sign: /certificate/i, action: 'give the certificate to trust as `tls: { ca }`.' },
  {
    // The other end has hung up on the greeting, or does not speak the protocol.
    sign: /ECONNRESET|EPIPE|closed|hang up|RESP|wrong version number|packet length|not connected within/i,
    action: 'see that Redis listens at this address, not something else, and with TLS only for rediss://.',
  },
]

function obstacleAdvice(obstacle: Error | undefined): string {
  const known = obstacle && OBSTACLES.find(({ sign }) => sign.test(obstacle.message))
  return `It is tried again by itself; ${known?.action ?? 'see that the server runs and can be reached.'}`
}

/** Every command that the store needs on every server. The script that tries them is the list. */
export const NEEDED_COMMANDS: readonly string[] = [
  'EVAL',
  'EVALSHA',
  ...new Set([...PROBE_SCRIPT.matchAll(/call\('([A-Z]+)'/g)].map(([, command]) => command!)),
]

const NODE_OF_A_CLUSTER = 'This server is a node of a cluster: use a cluster client, or `cluster: true` with the URL.'

/** What to do about the answers that a limiter meets. */
const ADVICE: Readonly<Record<string, string>> = {
  OOM: 'Redis is out of memory: raise maxmemory, or give limits an instance of their own.',
  READONLY: 'This server is a replica: connect to the primary, through Sentinel or as a cluster.',
  LOADING: 'Redis is loading its data; it answers when it is done.',
  MISCONF: 'Redis cannot save to disk and refuses writes: see its log, or turn off stop-writes-on-bgsave-error.',
  DENIED: 'This server is in protected mode: give it a password, or an address to listen at (bind).',
  NOAUTH: 'Give the client a user name and a password.',
  WRONGPASS: 'Give the client the right user name and password.',
  NOPERM: `Allow the user the keys that begin with the prefix, and the commands ${NEEDED_COMMANDS.join(', ')}.`,
  MOVED: NODE_OF_A_CLUSTER,
  CROSSSLOT: NODE_OF_A_CLUSTER,
  CLUSTERDOWN: 'Some slots of the cluster have no primary: see CLUSTER INFO.',
  MASTERDOWN: 'This replica has lost its primary: connect to the primary.',
  NOREPLICAS: 'Too few replicas are connected for writes (min-replicas-to-write).',
  BUSY: 'A script has been running too long on this server.',
}
