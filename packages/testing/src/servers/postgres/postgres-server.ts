import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { ProcessGuard } from '../process/process-guard.ts'
import { ServerError } from '../process/server-error.ts'
import { ServerProcess } from '../process/server-process.ts'
import { PostgresPrograms } from './postgres-programs.ts'

const USER = 'sluice'
const PROGRAM_WITHIN_MS = 30_000

/** Its data outlives a crash of the server, not of the machine; nothing of it may be left outside of its folder. */
const CONFIG: Readonly<Record<string, string>> = {
  fsync: 'off',
  full_page_writes: 'off',
  dynamic_shared_memory_type: 'mmap',
  // Enough for tests with many pools.
  max_connections: '200',
}

/** How a {@link PostgresServer} is started. Everything has a default. */
export interface PostgresOptions {
  /** A free one when not given. */
  readonly port?: number
  /** Password that clients must send. Default: none. */
  readonly password?: string
  /** Parameters of postgresql.conf, by name. They win over ours. */
  readonly config?: Readonly<Record<string, string>>
}

/** `running`, `paused` (it holds its connections and answers nothing), or `ended` (nobody listens on its port). */
export type PostgresStatus = 'running' | 'paused' | 'ended'

/** A database of a server. */
export interface PostgresDatabase {
  readonly name: string
  readonly url: string
}

interface Identity {
  readonly folder: string
  readonly guard: ProcessGuard
  readonly programs: PostgresPrograms
  readonly port: number
  readonly options: PostgresOptions
}

/**
 * A real PostgreSQL server on 127.0.0.1 that belongs to a test. It ends with the process that started it, even when that is
 * killed, and leaves no file behind. Ready within about a second: share one among the tests of a file, and give each a
 * database of its own.
 */
export class PostgresServer {
  readonly host: string = LOOPBACK
  /** The same for its whole life, through every restart. */
  readonly port: number
  /** `postgres://`, of the database `postgres`, as the user who may do everything. */
  readonly url: string
  readonly #identity: Identity
  #process: ServerProcess
  #isPaused = false
  #databases = 0
  /** A restart under way, which close() lets come to its end: what starts later would be nobody's. */
  #settled: Promise<void> = Promise.resolve()
  #closing: Promise<void> | undefined

  private constructor(identity: Identity, process: ServerProcess) {
    this.port = identity.port
    this.url = urlOf(identity, 'postgres')
    this.#identity = identity
    this.#process = process
  }

  /**
   * Starts a server; resolves when it takes connections.
   *
   * @throws ServerError `SLUICE_TESTING_PORT_TAKEN` for a port that was given and is not free,
   * `SLUICE_TESTING_START_FAILED` with the end of its log, `SLUICE_TESTING_PROGRAM_MISSING` without postgres
   */
  static start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { port } = options
    if (port !== undefined) return PostgresServer.#startOn(port, options)
    return onFreePorts(1, ([free]) => PostgresServer.#startOn(free!, options))
  }

  static async #startOn(port: number, options: PostgresOptions): Promise<PostgresServer> {
    const programs = await PostgresPrograms.find()
    const folder = await mkdtemp(join(tmpdir(), 'sluice-postgres-'))
    const guard = new ProcessGuard(folder)
    try {
      await programs.give(folder)
      await initialise({ folder, programs, password: options.password })
      const identity = { folder, guard, programs, port, options }
      return new PostgresServer(identity, await launch(identity))
    } catch (error) {
      await guard.dismiss()
      throw error
    }
  }

  /** Of the process that runs now, or ran last; each connection has a process of its own below it. */
  get pid(): number {
    return this.#process.pid
  }

  get status(): PostgresStatus {
    if (!this.#process.isRunning) return 'ended'
    return this.#isPaused ? 'paused' : 'running'
  }

  /** The last lines of its log, 40 at most, since it was last started. */
  get log(): string {
    return this.#process.log
  }

  /**
   * Runs SQL as the user who may do everything, and resolves with what psql prints: a line for each row, `|` between
   * columns. Rejects with what psql says when a statement fails, or the server cannot be reached within 30 seconds.
   */
  async query(sql: string, database = 'postgres'): Promise<string> {
    const { folder, programs } = this.#identity
    const url = urlOf(this.#identity, database)
    const args = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', sql]
    return (await programs.run('psql', args, { cwd: folder, timeout: PROGRAM_WITHIN_MS })).trimEnd()
  }

  /** A database of a new name: empty, or with everything that `template` holds, which nobody may be connected to. */
  async createDatabase(template = 'template0'): Promise<PostgresDatabase> {
    this.#databases++
    const name = `test_${this.#databases}`
    await this.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
    return { name, url: urlOf(this.#identity, name) }
  }

  /** Ends it and all its connections at once, as a crash does (SIGKILL). Nothing happens when it already is gone. */
  async kill(): Promise<void> {
    // Stopped first, so that nothing is born while its children are counted. They would not end at once by themselves.
    this.#process.signal('SIGSTOP')
    const children = this.#process.isRunning ? childrenOf(this.pid) : []
    this.#signalAll('SIGKILL')
    this.#isPaused = false
    await this.#process.ended
    // Until the last of them is gone, its shared memory keeps another server from starting on the same data.
    await pollUntil(async () => ((await areAny(children, ALIVE)) ? undefined : true), {
      what: `the processes of the PostgreSQL server on port ${this.port} to be gone`,
    })
  }

  /** Ends it in good order: connections are closed, data is kept (SIGINT). Resolves when it is gone. */
  stop(): Promise<void> {
    return this.#end('SIGINT')
  }

  /** Makes it hang (SIGSTOP): connections stay, new ones are accepted, nothing is answered. Resolves when it hangs. */
  async pause(): Promise<void> {
    this.#requireProcess('pause')
    this.#isPaused = true
    await this.#process.freeze()
    this.#signalAll('SIGSTOP')
    await pollUntil(async () => ((await areAny(childrenOf(this.pid), ACTIVE)) ? undefined : true), {
      what: `the connections of the PostgreSQL server on port ${this.port} to stand still`,
    })
  }

  /** Lets it go on (SIGCONT): it answers all it was sent meanwhile. Nothing happens when it is not paused. */
  resume(): void {
    this.#requireProcess('resume')
    this.#isPaused = false
    this.#signalAll('SIGCONT')
  }

  /** Starts it again on the same port with the same data, after {@link stop} if it runs. */
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
    // Without ceremony, but it takes its shared memory along, which SIGKILL would leave behind.
    await this.#end('SIGQUIT')
    await this.#identity.guard.dismiss()
  }

  async #end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    this.#process.signal(signal)
    // What stands still notices the signal when it goes on.
    if (this.#isPaused) this.#signalAll('SIGCONT')
    this.#isPaused = false
    await this.#process.ended
  }

  /** To the children first: a server whose children were killed would start them again. */
  #signalAll(signal: NodeJS.Signals): void {
    if (!this.#process.isRunning) return
    for (const pid of childrenOf(this.pid)) signalProcess(pid, signal)
    this.#process.signal(signal)
  }

  #requireProcess(action: string): void {
    if (!this.#process.isRunning) throw this.#notRunning(action, 'ended')
  }

  #notRunning(action: string, state: string): ServerError {
    const message = `cannot ${action} the PostgreSQL server on port ${this.port}: it is ${state}. Start a new one, or restart one that was not closed.`
    return new ServerError('SLUICE_TESTING_NOT_RUNNING', message)
  }
}

/** Starts a real PostgreSQL server for a test; see {@link PostgresServer.start}. */
export function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  return PostgresServer.start(options)
}

async function initialise({
  folder,
  programs,
  password,
}: Pick<Identity, 'folder' | 'programs'> & { readonly password: string | undefined }): Promise<void> {
  const args = ['-D', dataOf(folder), '-U', USER, '-E', 'UTF8', '--no-locale', '--no-sync']
  const passwordFile = join(folder, 'password')
  if (password !== undefined) {
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
    await programs.give(passwordFile)
    args.push('--auth=scram-sha-256', `--pwfile=${passwordFile}`)
  } else {
    args.push('--auth=trust')
  }
  try {
    await programs.run('initdb', args, { cwd: folder, timeout: PROGRAM_WITHIN_MS })
  } catch (error) {
    throw initFailed(error)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

function initFailed(error: unknown): ServerError {
  return new ServerError('SLUICE_TESTING_START_FAILED', `initdb could not make a new server: ${error}`, error)
}

async function launch(identity: Identity): Promise<ServerProcess> {
  const { folder, guard, programs, port, options } = identity
  const { command, args } = programs.call('postgres')
  const settings = Object.entries({ ...CONFIG, ...options.config }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const place = ['-D', dataOf(folder), '-h', LOOPBACK, '-p', String(port), '-k', folder]
  const run = await ServerProcess.start({ command, args: [...args, ...place, ...settings], folder })
  guard.watch(run.pid)
  run.ended.then(() => guard.watch(undefined))
  try {
    await pollUntil(
      async () => {
        if (!run.isRunning) throw startFailed(run, port)
        return await isReady(run, folder)
      },
      {
        what: `the PostgreSQL server on port ${port} to take connections`,
        explain: () => `The end of its log:\n${run.log}`,
      },
    )
    return run
  } catch (error) {
    run.signal('SIGQUIT')
    await run.ended
    throw error
  }
}

/** What the server writes into its folder: its process id first, and at last that it takes connections. */
async function isReady(run: ServerProcess, folder: string): Promise<true | undefined> {
  try {
    const lines = (await readFile(join(dataOf(folder), 'postmaster.pid'), 'utf8')).split('\n')
    return lines[0] === String(run.pid) && lines[7]?.trim() === 'ready' ? true : undefined
  } catch {
    return undefined
  }
}

function startFailed(run: ServerProcess, port: number): ServerError {
  const log = `The end of its log:\n${run.log}`
  if (run.log.includes('Address already in use')) {
    const message = `a PostgreSQL server cannot listen on port ${port} of ${LOOPBACK}: taken by another process. Give another port, or none to get a free one. ${log}`
    return new ServerError('SLUICE_TESTING_PORT_TAKEN', message)
  }
  const message = `the PostgreSQL server for port ${port} ended before it took connections; expected it to run. Look at its options. ${log}`
  return new ServerError('SLUICE_TESTING_START_FAILED', message)
}

function dataOf(folder: string): string {
  return join(folder, 'data')
}

function urlOf({ port, options }: Pick<Identity, 'port' | 'options'>, database: string): string {
  const secret = options.password === undefined ? '' : `:${encodeURIComponent(options.password)}`
  return `postgres://${USER}${secret}@${LOOPBACK}:${port}/${database}`
}

/** The processes of connections, and of the work in the background. Only Linux tells. */
function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return text.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}

/** States of a process that does something, and of one that is not yet over, as Linux tells them. */
const ACTIVE = /^State:\s+[^TZX]/m
const ALIVE = /^State:\s+[^ZX]/m

async function areAny(pids: readonly number[], wanted: RegExp): Promise<boolean> {
  const states = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tX')))
  return states.some((state) => wanted.test(state))
}
