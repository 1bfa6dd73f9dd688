import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { ProcessGuard } from '../process/process-guard.ts'
import { ServerError } from '../process/server-error.ts'
import { ServerProcess } from '../process/server-process.ts'
import type { RedisConfigurationOptions } from './redis-configuration.ts'
import { makeCertificate, redisConfiguration } from './redis-configuration.ts'
import { RedisConnection, type RedisConnectionOptions } from './redis-connection.ts'
import type { Reply } from './reply-parser.ts'

/** How long a server that starts may be silent before it is asked again. */
const LONGEST_SILENCE_MS = 1000

/** How a {@link RedisServer} is started. Everything has a default. */
export interface RedisOptions extends RedisConfigurationOptions {
  /** A free one when not given. */
  readonly port?: number
  /** Whether the port speaks TLS, with a certificate made for this server, and nothing else. */
  readonly tls?: boolean
  /** Arguments of the command line, after the configuration file. */
  readonly args?: readonly string[]
}

/** `running`, `paused` (it holds its connections and answers nothing), or `ended` (nobody listens on its port). */
export type RedisStatus = 'running' | 'paused' | 'ended'

interface Identity {
  readonly folder: string
  readonly guard: ProcessGuard
  readonly args: readonly string[]
  readonly access: RedisConnectionOptions
}

/**
 * A real Redis server on 127.0.0.1 that belongs to a test. It ends with the process that started it, even when that is
 * killed, and leaves no file behind.
 */
export class RedisServer {
  readonly host: string = LOOPBACK
  /** The same for its whole life, through every restart. */
  readonly port: number
  /** `redis://` or `rediss://`, with the credentials that give full access. */
  readonly url: string
  /** With TLS, the certificate to trust, in PEM. */
  readonly ca: string | undefined
  readonly #identity: Identity
  #process: ServerProcess
  #isPaused = false
  /** A restart under way, which close() lets come to its end: what starts later would be nobody's. */
  #settled: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined

  private constructor(identity: Identity, process: ServerProcess) {
    const { port, ca } = identity.access
    this.port = port
    this.ca = ca
    this.url = urlOf(identity.access)
    this.#identity = identity
    this.#process = process
  }

  /**
   * Starts a server; resolves when it answers.
   *
   * @throws ServerError `SLUICE_TESTING_PORT_TAKEN` for a port that was given and is not free,
   * `SLUICE_TESTING_START_FAILED` with the end of its log, `SLUICE_TESTING_PROGRAM_MISSING` without redis-server
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

  /** Of the process that runs now, or ran last. */
  get pid(): number {
    return this.#process.pid
  }

  get status(): RedisStatus {
    if (!this.#process.isRunning) return 'ended'
    return this.#isPaused ? 'paused' : 'running'
  }

  /** The last lines of its log, 40 at most, since it was last started. */
  get log(): string {
    return this.#process.log
  }

  /**
   * Sends one command and resolves with its reply. Each call has a connection of its own, so nothing that belongs to a
   * connection (SELECT, MULTI, SUBSCRIBE) lasts; {@link connect} is for that.
   *
   * @throws RedisReplyError when the server answers with an error; the error of the socket when it does not run;
   * ServerError `SLUICE_TESTING_NO_REPLY` when it does not answer within 10 seconds
   */
  async command(...parts: readonly (string | number)[]): Promise<Reply> {
    const connection = await this.connect()
    try {
      return await connection.send(...parts)
    } finally {
      await connection.close()
    }
  }

  /** A connection with full access, for you to close. */
  connect(options: Pick<RedisConnectionOptions, 'encoding' | 'replyWithinMs'> = {}): Promise<RedisConnection> {
    return RedisConnection.open({ ...this.#identity.access, ...options })
  }

  /** Ends it at once, as a crash does (SIGKILL). Resolves when it is gone; nothing happens when it already is. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Ends it in good order (SIGTERM): it saves what it is configured to save. Resolves when it is gone. */
  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  /** Makes it hang (SIGSTOP): connections stay, new ones are accepted, nothing is answered. Resolves when it hangs. */
  async pause(): Promise<void> {
    this.#requireProcess('pause')
    this.#isPaused = true
    await this.#process.freeze()
  }

  /** Lets it go on (SIGCONT): it answers all it was sent meanwhile. Nothing happens when it is not paused. */
  resume(): void {
    this.#requireProcess('resume')
    this.#isPaused = false
    this.#process.signal('SIGCONT')
  }

  /**
   * Starts it again on the same port with the same configuration and folder, after {@link stop} if it runs. Its data is
   * gone unless `config` makes it save. Resolves when it answers.
   */
  restart(): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(this.#notRunning('restart', 'closed'))
    const restarted = this.#relaunch()
    this.#settled = restarted.catch(() => undefined)
    return restarted
  }

  /** Ends it and removes its files, in whatever state it is. May be called more than once. */
  close(): Promise<void> {
    this.#closing ??= this.#finish()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #relaunch(): Promise<void> {
    await this.stop()
    this.#process = await launch(this.#identity)
  }

  async #finish(): Promise<void> {
    await this.#settled
    await this.kill()
    await this.#identity.guard.dismiss()
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#process.signal(signal)
    // A process that stands still notices SIGTERM when it goes on.
    if (this.#isPaused) this.#process.signal('SIGCONT')
    this.#isPaused = false
    await this.#process.ended
  }

  #requireProcess(action: string): void {
    if (!this.#process.isRunning) throw this.#notRunning(action, 'ended')
  }

  #notRunning(action: string, state: string): ServerError {
    const message = `cannot ${action} the Redis server on port ${this.port}: it is ${state}. Start a new one, or restart one that was not closed.`
    return new ServerError('SLUICE_TESTING_NOT_RUNNING', message)
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
        // Nobody listens yet, it is loading its data, or another server has the port and does not know us.
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
    const message = `a Redis server cannot listen on port ${port} of ${LOOPBACK}, or on the port of its cluster bus: taken by another process. Give another port, or none to get a free one. ${log}`
    return new ServerError('SLUICE_TESTING_PORT_TAKEN', message)
  }
  const message = `the Redis server for port ${port} ended before it answered; expected it to run. Look at its options. ${log}`
  return new ServerError('SLUICE_TESTING_START_FAILED', message)
}

function urlOf({ port, ca, username = '', password }: RedisConnectionOptions): string {
  const scheme = ca === undefined ? 'redis' : 'rediss'
  const who = password === undefined ? '' : `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`
  return `${scheme}://${who}${LOOPBACK}:${port}`
}
