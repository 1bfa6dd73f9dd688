import { mkdtemp, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import type { CheckAnswer } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import { systemRandom as secureRandom } from '@sluice/core'
import type { Sleep } from '@sluice/runtime'
import { Logger, LogOutput, systemNowMs, systemTurnEnd } from '@sluice/runtime'
import type { ThreadSystem } from './clock-and-random.ts'
import { systemOfProcess, systemReadings } from './clock-and-random.ts'
import type { Service } from './service.ts'
import { createService } from './service.ts'
import type { Settings } from './settings/settings.ts'
import { readSettings } from './settings/settings.ts'

// What the tests of this app share: the whole service on a free port, with time in the hands of the test.

/** 2023-11-05T10:39:15Z, the time at which every service of a test begins. */
export const START_MS = 1_699_180_755_000

/** A line of the log. */
export interface LogLine {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

/** A started service. */
export interface RunningNode {
  readonly service: Service
  readonly settings: Settings
  readonly port: number
  /** Port of the Redis protocol; 0 if it is off. */
  readonly respPort: number
  /** Port of the gRPC listener; 0 if it is off. */
  readonly grpcPort: number
  /** Port of the gateway; 0 if it is off. */
  readonly gatewayPort: number
  readonly origin: string
  /** Of the admin API, which may have a listener of its own. */
  readonly adminOrigin: string
  /** Lines of the log, oldest first. */
  readonly log: readonly LogLine[]
  /** Those that say that the service itself failed. */
  readonly errors: readonly LogLine[]
  /** The first API key; undefined when this start made none. */
  readonly adminKey: string | undefined
  /** Asks for a check with this body: JSON of a value, or a string or bytes as they are. */
  check(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** Calls the admin API with `key` (default: the first key); `body` is sent as JSON. */
  admin(method: string, path: string, options?: { readonly body?: unknown; readonly key?: string }): Promise<Response>
  /** Stops it, and removes its data folder unless the settings named one. */
  stop(): Promise<void>
}

/** A started service whose test controls its time. */
export interface RunningService extends RunningNode {
  /** Lets the time of the limiter pass. */
  advance(micros: number): void
  /**
   * Ends the waits of the service that are this long, such as the grace period of a stop; there need not be one yet.
   */
  endWaits(delayMs: number): Promise<void>
  /** Says how late the event loop is from now on. */
  setLoopDelay(delayMs: number): void
}

/** Settings that differ from the defaults: a free port, nothing in the log but failures, no time to drain. */
export function testSettings(settings: Partial<Settings> = {}): Settings {
  const defaults = readSettings({ args: [], environment: {}, cores: 1 })
  return { ...defaults, port: 0, logLevel: 'warn', drainMs: 0, ...settings }
}

/** Starts a service, in a data folder of its own unless `settings` names one. The test calls `stop()`. */
export async function startService(settings: Partial<Settings> = {}): Promise<RunningService> {
  let nowMicros = START_MS * 1000
  let loopDelayMs = 0
  const waits = new HeldWaits()
  const node = await startNode(settings, (output) => ({
    clock: { nowMicros: () => nowMicros },
    sleep: waits.sleep,
    random: () => 0.5,
    secureRandom,
    monotonicMs: () => nowMicros / 1000,
    atTurnEnd: systemTurnEnd,
    openLoopDelay: () => ({ readMs: () => loopDelayMs, close: () => undefined }),
    readings: systemReadings,
    log: new Logger(output),
    logOutput: output,
    writeLine: () => undefined,
  }))
  const controls = {
    advance(micros: number): void {
      nowMicros += micros
    },
    endWaits: (delayMs: number) => waits.end(delayMs),
    setLoopDelay(delayMs: number): void {
      loopDelayMs = delayMs
    },
  }
  return Object.assign(node, controls)
}

/** The same with the real clock and real timers, for what several processes or servers do together. */
export function startRealService(settings: Partial<Settings> = {}): Promise<RunningNode> {
  return startNode(settings, systemOfProcess)
}

async function startNode(
  settings: Partial<Settings>,
  systemOf: (output: LogOutput) => ThreadSystem,
): Promise<RunningNode> {
  const folder = settings.dataDir ?? (await mkdtemp(join(tmpdir(), 'sluice-service-')))
  const complete = testSettings({ ...settings, dataDir: folder })
  let adminKey: string | undefined
  const log: LogLine[] = []
  const output = new LogOutput({ stream: intoLines(log), nowMs: systemNowMs, level: complete.logLevel })
  const showKey = (token: string): void => {
    adminKey = token
  }
  const service = createService({ settings: complete, system: systemOf(output), showKey })
  const removeFolder = async (): Promise<void> => {
    if (settings.dataDir === undefined) await rm(folder, { recursive: true, force: true })
  }
  try {
    await service.start()
  } catch (error) {
    await removeFolder()
    throw error
  }
  const port = service.port ?? 0
  const scheme = complete.httpTls === undefined ? 'http' : 'https'
  const origin = `${scheme}://127.0.0.1:${port}`
  const adminOrigin = `${scheme}://127.0.0.1:${service.ports.admin ?? port}`
  return {
    service,
    settings: complete,
    port,
    respPort: service.ports.resp ?? 0,
    grpcPort: service.ports.grpc ?? 0,
    gatewayPort: service.ports.gateway ?? 0,
    origin,
    adminOrigin,
    log,
    get errors() {
      return log.filter(({ level }) => level === 'error')
    },
    get adminKey() {
      return adminKey
    },
    check: (body, headers = { 'Content-Type': 'application/json' }) => {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      return fetch(origin + CHECK_PATH, { method: 'POST', headers, body: isRaw ? body : JSON.stringify(body) })
    },
    admin: (method, path, { body, key = adminKey } = {}) => {
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
      return fetch(adminOrigin + path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    },
    async stop() {
      await service.stop()
      await removeFolder()
    },
  }
}

/** Waits that end when the test says so. */
class HeldWaits {
  readonly #pending = new Map<() => void, number>()
  #notify = (): void => undefined

  readonly sleep: Sleep = (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const finish = (): void => {
        this.#pending.delete(finish)
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = (): void => {
        this.#pending.delete(finish)
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', onAbort)
      this.#pending.set(finish, delayMs)
      this.#notify()
    })

  async end(delayMs: number): Promise<void> {
    while (![...this.#pending.values()].includes(delayMs)) {
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    }
    for (const [finish, waitMs] of [...this.#pending]) if (waitMs === delayMs) finish()
  }
}

function intoLines(log: LogLine[]): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      for (const line of String(chunk).split('\n')) if (line !== '') log.push(JSON.parse(line))
      done()
    },
  })
}

/** The body of an answer to a check. */
export async function answerOf(response: Response): Promise<CheckAnswer> {
  return (await response.json()) as CheckAnswer
}

/** A connection whose bytes the test writes itself. */
export class RawConnection {
  readonly #socket: Socket
  #received = ''
  #notify = (): void => undefined

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (text: string) => {
      this.#received += text
      this.#notify()
    })
    // A connection that is cut ends with an error or without; `end` and `until` tell what had come before.
    this.#socket.on('error', () => this.#notify())
    this.#socket.on('close', () => this.#notify())
  }

  send(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** Resolves when `text` has come, with all that has; rejects when the connection ends before. */
  async until(text: string): Promise<string> {
    while (!this.#received.includes(text)) {
      if (this.#socket.closed) throw new Error(`The connection ended after: ${this.#received}`)
      await this.#change()
    }
    return this.#received
  }

  /** Resolves when the other side has ended the connection, with all that came. */
  async end(): Promise<string> {
    while (!this.#socket.closed) await this.#change()
    return this.#received
  }

  close(): void {
    this.#socket.destroy()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#notify = resolve
    })
  }
}

/** The text of a check as HTTP/1.1. `headers` are whole lines, each with its end. */
export function rawCheck(body: string, headers = ''): string {
  return (
    `POST ${CHECK_PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ` +
    `${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`
  )
}
