import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOOPBACK, onFreePorts } from '../process/free-port.ts'
import { pollUntil } from '../process/poll-until.ts'
import { ProcessGuard } from '../process/process-guard.ts'
import { ServerError } from '../process/server-error.ts'
import { ServerProcess } from '../process/server-process.ts'
import { type ServerStatus, TestServer } from '../process/test-server.ts'
import { PostgresPrograms } from './postgres-programs.ts'

const USER = 'sluice'
const PROGRAM_WITHIN_MS = 30_000

/** Its data survives a crash of the server, not of the machine. It must leave nothing outside of its folder. */
const CONFIG: Readonly<Record<string, string>> = {
  fsync: 'off',
  full_page_writes: 'off',
  dynamic_shared_memory_type: 'mmap',
  // Enough for tests with many pools.
  max_connections: '200',
}

/** Options of a {@link PostgresServer}. */
export interface PostgresOptions {
  /** Default: a free port. */
  readonly port?: number
  /** Password that clients must send. Default: none. */
  readonly password?: string
  /** Parameters of postgresql.conf, by name. They override the built-in ones. */
  readonly config?: Readonly<Record<string, string>>
}

/** State of a {@link PostgresServer}. */
export type PostgresStatus = ServerStatus

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
 * A real PostgreSQL server on 127.0.0.1 for tests. It ends with the process that started it, even if that is killed,
 * and leaves no file behind. Ready within about a second: share one among the tests of a file, and give each test its
 * own database.
 */
export class PostgresServer extends TestServer {
  /** `postgres://` of the database `postgres`, as superuser. */
  readonly url: string
  readonly #identity: Identity
  #databases = 0

  private constructor(identity: Identity, process: ServerProcess) {
    const { port, guard } = identity
    super({ name: 'PostgreSQL server', port, guard, process, relaunch: () => launch(identity) })
    this.url = urlOf(identity, 'postgres')
    this.#identity = identity
  }

  /**
   * Starts a server; resolves when it accepts connections.
   *
   * @throws ServerError `SLUICE_TESTING_PORT_TAKEN` if a given port is not free, `SLUICE_TESTING_START_FAILED` with the
   * end of its log, `SLUICE_TESTING_PROGRAM_MISSING` without postgres
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

  /**
   * Runs SQL as superuser, and resolves with the output of psql: a line per row, `|` between columns. Rejects with the
   * message of psql if a statement fails, or the server is unreachable for 30 seconds.
   */
  async query(sql: string, database = 'postgres'): Promise<string> {
    const { folder, programs } = this.#identity
    const url = urlOf(this.#identity, database)
    const args = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', sql]
    return (await programs.run('psql', args, { cwd: folder, timeout: PROGRAM_WITHIN_MS })).trimEnd()
  }

  /** Creates a database with a new name: empty, or a copy of `template`, which must have no connections. */
  async createDatabase(template = 'template0'): Promise<PostgresDatabase> {
    this.#databases++
    const name = `test_${this.#databases}`
    await this.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
    return { name, url: urlOf(this.#identity, name) }
  }

  /** Kills it and all its connections at once, like a crash (SIGKILL). No effect if it has ended. */
  override async kill(): Promise<void> {
    // Stopped first, so that it starts no process while its children are counted. They would not end at once by
    // themselves.
    this.signal('SIGSTOP')
    const children = this.status === 'ended' ? [] : childrenOf(this.pid)
    this.signalAll('SIGKILL')
    await super.kill()
    // Until the last of them has ended, its shared memory keeps another server from starting on the same data.
    await pollUntil(async () => ((await areAny(children, ALIVE)) ? undefined : true), {
      what: `the processes of the PostgreSQL server on port ${this.port} to end`,
    })
  }

  /** Stops it cleanly: connections are closed, data is kept (SIGINT). Resolves when it has ended. */
  override stop(): Promise<void> {
    return this.end('SIGINT')
  }

  override async pause(): Promise<void> {
    await super.pause()
    this.signalAll('SIGSTOP')
    await pollUntil(async () => ((await areAny(childrenOf(this.pid), ACTIVE)) ? undefined : true), {
      what: `the connections of the PostgreSQL server on port ${this.port} to stand still`,
    })
  }

  /** To the children first: a server whose children were killed would start them again. */
  protected override signalAll(signal: NodeJS.Signals): void {
    if (this.status === 'ended') return
    for (const pid of childrenOf(this.pid)) signalProcess(pid, signal)
    this.signal(signal)
  }

  /** Unlike SIGKILL, SIGQUIT lets it remove its shared memory. */
  protected override endForGood(): Promise<void> {
    return this.end('SIGQUIT')
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
    return new ServerError(
      'SLUICE_TESTING_PORT_TAKEN',
      `a PostgreSQL server cannot listen on port ${port} of ${LOOPBACK}: taken by another process. ` +
        `Give another port, or none to get a free one. ${log}`,
    )
  }
  return new ServerError(
    'SLUICE_TESTING_START_FAILED',
    `the PostgreSQL server for port ${port} ended before it took connections; expected it to run. ` +
      `Look at its options. ${log}`,
  )
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
