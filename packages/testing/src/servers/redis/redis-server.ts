import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { ProcessGuard } from '../process/process-guard.ts'
import { ServerError } from '../process/server-error.ts'
import { ServerProcess } from '../process/server-process.ts'
import { type ServerStatus, TestServer } from '../process/test-server.ts'
import type { RedisConfigurationOptions } from './redis-configuration.ts'
import { makeCertificate, redisConfiguration } from './redis-configuration.ts'
import { RedisConnection, type RedisConnectionOptions } from './redis-test-connection.ts'
import type { Reply } from './reply-parser.ts'

/** Timeout of the readiness check of a server that starts. */
const LONGEST_SILENCE_MS = 1000

/** Options of a {@link RedisServer}. */
export interface RedisOptions extends RedisConfigurationOptions {
  /** Default: a free port. */
  readonly port?: number
  /** Whether the port speaks only TLS, with a certificate created for this server. */
  readonly tls?: boolean
  /** Command-line arguments, after the configuration file. */
  readonly args?: readonly string[]
}

/** State of a {@link RedisServer}. */
export type RedisStatus = ServerStatus

interface Identity {
  readonly folder: string
  readonly guard: ProcessGuard
  readonly args: readonly string[]
  readonly access: RedisConnectionOptions
}

/**
 * A real Redis server on 127.0.0.1 for tests. It ends with the process that started it, even if that is killed, and
 * leaves no file behind. A restart loses its data, unless `config` makes it save.
 */
export class RedisServer extends TestServer {
  /** `redis://` or `rediss://`, with credentials for full access. */
  readonly url: string
  /** With TLS, the certificate to trust, in PEM. */
  readonly ca: string | undefined
  readonly #access: RedisConnectionOptions

  private constructor(identity: Identity, process: ServerProcess) {
    const { guard, access } = identity
    super({ name: 'Redis server', port: access.port, guard, process, relaunch: () => launch(identity) })
    this.ca = access.ca
    this.url = urlOf(access)
    this.#access = access
  }

  /**
   * Starts a server; resolves when it answers.
   *
   * @throws ServerError `SLUICE_TESTING_PORT_TAKEN` if a given port is not free, `SLUICE_TESTING_START_FAILED` with the
   * end of its log, `SLUICE_TESTING_PROGRAM_MISSING` without redis-server
   */
  static start(options: RedisOptions = {}): Promise<RedisServer> {
    const { port } = options
    if (port !== undefined) return RedisServer.#startOn(port, options)
    return onFreePorts(1, ([free]) => RedisServer.#startOn(free!, options))
  }

  static async #startOn(port: number, options: RedisOptions): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
    const guard = new ProcessGuard(folder)
    try {
      const certificate = options.tls === true ? await makeCertificate(folder) : undefined
      const file = join(folder, 'redis.conf')
      await writeFile(file, redisConfiguration(options, { port, folder, certificate }))
      const trust = certificate === undefined ? {} : { ca: certificate.ca }
      const access = { port, ...trust, ...credentialsOf(options) }
      const identity = { folder, guard, args: [file, ...(options.args ?? [])], access }
      return new RedisServer(identity, await launch(identity))
    } catch (error) {
      await guard.dismiss()
      throw error
    }
  }

  /**
   * Sends one command and resolves with its reply. Each call uses a separate connection, so connection state (SELECT,
   * MULTI, SUBSCRIBE) is lost; use {@link connect} for that.
   *
   * @throws RedisReplyError if the server answers with an error; the error of the socket if it does not run;
   * ServerError `SLUICE_TESTING_NO_REPLY` if it does not answer within 10 seconds
   */
  async command(...parts: readonly (string | number)[]): Promise<Reply> {
    const connection = await this.connect()
    try {
      return await connection.send(...parts)
    } finally {
      await connection.close()
    }
  }

  /** A connection with full access. Close it yourself. */
  connect(options: Pick<RedisConnectionOptions, 'encoding' | 'replyWithinMs'> = {}): Promise<RedisConnection> {
    return RedisConnection.open({ ...this.#access, ...options })
  }

  /** Stops it cleanly (SIGTERM): it saves what it is configured to save. Resolves when it has ended. */
  override stop(): Promise<void> {
    return this.end('SIGTERM')
  }
}

/** Starts a real Redis server for a test; see {@link RedisServer.start}. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return RedisServer.start(options)
}

function credentialsOf({ password, aclUser }: RedisOptions): { username?: string; password?: string } {
  if (aclUser !== undefined) return { username: aclUser.name, password: aclUser.password }
  return password === undefined ? {} : { password }
}

async function launch({ folder, guard, args, access }: Identity): Promise<ServerProcess> {
  const run = await ServerProcess.start({ command: 'redis-server', args, folder })
  guard.watch(run.pid)
  run.ended.then(() => guard.watch(undefined))
  let obstacle: unknown
  try {
    await pollUntil(
      async () => {
        if (!run.isRunning) throw startFailed(run, access.port)
        // Nothing listens yet, it is loading its data, or another server has the port and does not know us.
        return await answers(run, access).catch((error: unknown) => {
          obstacle = error
          return undefined
        })
      },
      {
        what: `the Redis server on port ${access.port} to answer`,
        explain: () => `At last: ${obstacle}. The end of its log:\n${run.log}`,
      },
    )
    return run
  } catch (error) {
    run.signal('SIGKILL')
    await run.ended
    throw error
  }
}

/** True when the server of this very process answers, and not another one on the same port. */
async function answers(run: ServerProcess, access: RedisConnectionOptions): Promise<true | undefined> {
  const connection = await RedisConnection.open({ ...access, replyWithinMs: LONGEST_SILENCE_MS })
  try {
    // INFO answers while the data is being loaded; PING does not.
    const [info] = await Promise.all([connection.send('INFO', 'server'), connection.send('PING')])
    return String(info).includes(`process_id:${run.pid}\r\n`) ? true : undefined
  } finally {
    await connection.close()
  }
}

function startFailed(run: ServerProcess, port: number): ServerError {
  const log = `The end of its log:\n${run.log}`
  if (run.log.includes('Address already in use')) {
    return new ServerError(
      'SLUICE_TESTING_PORT_TAKEN',
      `a Redis server cannot listen on port ${port} of ${LOOPBACK}, or on the port of its cluster bus: taken by ` +
        `another process. Give another port, or none to get a free one. ${log}`,
    )
  }
  return new ServerError(
    'SLUICE_TESTING_START_FAILED',
    `the Redis server for port ${port} ended before it answered; expected it to run. Look at its options. ${log}`,
  )
}

function urlOf({ port, ca, username = '', password }: RedisConnectionOptions): string {
  const scheme = ca === undefined ? 'redis' : 'rediss'
  const who = password === undefined ? '' : `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`
  return `${scheme}://${who}${LOOPBACK}:${port}`
}
