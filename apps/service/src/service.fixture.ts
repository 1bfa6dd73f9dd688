import type { Socket } from 'node:net'
import { connect } from 'node:net'
import type { CheckAnswer } from '@sluice/contract'
import { CHECK_PATH } from '@sluice/contract'
import type { Service } from './compose.ts'
import { composeService } from './compose.ts'

// What the tests of this app share: the whole service on a free port, with time in the hands of the test.

/** 2023-11-05T10:39:15Z, the time at which every service of a test begins. */
const START_MS = 1_699_180_755_000

/** A started service and what its test controls. */
export interface RunningService {
  readonly service: Service
  readonly port: number
  readonly origin: string
  /** What was reported as a failure of the service itself. */
  readonly errors: unknown[]
  /** Lets the time of the limiter pass. */
  advance(micros: number): void
  /** Ends every wait of the service, such as the grace period of a stop. */
  endWaits(): void
  /** Asks for a check with this body: JSON of a value, or a text or bytes as they are. */
  check(body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
}

/** Starts a service. The test calls `service.stop()`. */
export async function startService(): Promise<RunningService> {
  let nowMicros = START_MS * 1000
  const errors: unknown[] = []
  const waits = Promise.withResolvers<void>()
  const service = composeService({
    settings: { host: '127.0.0.1', port: 0 },
    clock: { nowMicros: () => nowMicros },
    sleep: (_delayMs, signal) =>
      Promise.race([
        waits.promise,
        new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
      ]),
    reportError: (error) => errors.push(error),
  })
  await service.start()
  const port = service.port ?? 0
  const origin = `http://127.0.0.1:${port}`
  return {
    service,
    port,
    origin,
    errors,
    advance: (micros) => {
      nowMicros += micros
    },
    endWaits: waits.resolve,
    check: (body, headers = { 'Content-Type': 'application/json' }) => {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      return fetch(origin + CHECK_PATH, { method: 'POST', headers, body: isRaw ? body : JSON.stringify(body) })
    },
  }
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
  return `POST ${CHECK_PATH} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`
}
