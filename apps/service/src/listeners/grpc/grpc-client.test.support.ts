import type { ChannelCredentials, ServiceError } from '@grpc/grpc-js'
import { Client, credentials, Metadata, status } from '@grpc/grpc-js'
import type { EnvoyAnswer } from '@sluice/contract'
import type { RunningNode } from '../../service.fixture.ts'
import { peerBytes, peerJson } from './protobuf-peer.test.support.ts'

export const SHOULD_RATE_LIMIT = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEALTH = '/grpc.health.v1.Health'

/** An answer as protobuf has it in JSON, with what is added to the response of the proxy. */
export interface GrpcAnswer extends EnvoyAnswer {
  readonly responseHeadersToAdd?: readonly { readonly key: string; readonly value: string }[]
}

/** How a call failed: the name of its status, and its message. */
export interface GrpcFailure {
  readonly status: string
  readonly message: string
}

/** How calls are made. */
export interface ClientOptions {
  readonly key?: string
  readonly credentials?: ChannelCredentials
}

/** A client of the listener: @grpc/grpc-js with the messages of @bufbuild/protobuf. */
export class GrpcClient {
  readonly #client: Client
  readonly #metadata = new Metadata()

  constructor({ grpcPort }: Pick<RunningNode, 'grpcPort'>, { key, credentials: secured }: ClientOptions = {}) {
    this.#client = new Client(`127.0.0.1:${grpcPort}`, secured ?? credentials.createInsecure(), {
      'grpc.enable_retries': 0,
    })
    if (key !== undefined) this.#metadata.set('authorization', `Bearer ${key}`)
  }

  /** Asks with a request as {@link peerBytes} takes it. Rejects with the error of grpc-js. */
  ask(request: object): Promise<GrpcAnswer> {
    return this.send(SHOULD_RATE_LIMIT, peerBytes('RateLimitRequest', request)).then(
      (bytes) => withDurations(peerJson('RateLimitResponse', bytes)) as GrpcAnswer,
    )
  }

  /** How a request fails. */
  failureOf(request: object): Promise<GrpcFailure> {
    return failure(this.ask(request))
  }

  async health(service = ''): Promise<unknown> {
    return peerJson(
      'HealthCheckResponse',
      await this.send(`${HEALTH}/Check`, peerBytes('HealthCheckRequest', { service })),
    )
  }

  /** Watches the health; the next status by each call of `next`. */
  watch(service = ''): { readonly next: () => Promise<unknown>; readonly cancel: () => void } {
    const identity = (bytes: Buffer): Buffer => bytes
    const message = peerBytes('HealthCheckRequest', { service })
    const stream = this.#client.makeServerStreamRequest(`${HEALTH}/Watch`, identity, identity, message)
    const messages = stream[Symbol.asyncIterator]()
    return {
      next: async () => {
        const { value } = await messages.next()
        return peerJson('HealthCheckResponse', value as Buffer)
      },
      cancel: () => {
        stream.on('error', () => undefined)
        stream.cancel()
      },
    }
  }

  /** Calls a method with bytes. */
  send(path: string, message: Buffer, deadlineMs?: number): Promise<Buffer> {
    const identity = (bytes: Buffer): Buffer => bytes
    const options = deadlineMs === undefined ? {} : { deadline: deadlineMs }
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(path, identity, identity, message, this.#metadata, options, (error, answer) => {
        if (error === null) resolve(answer!)
        else reject(error)
      })
    })
  }

  close(): void {
    this.#client.close()
  }
}

/** How a call failed that must fail. */
export async function failure(call: Promise<unknown>): Promise<GrpcFailure> {
  try {
    return { status: 'OK', message: JSON.stringify(await call) }
  } catch (error) {
    const { code, details } = error as ServiceError
    return { status: status[code]!, message: details }
  }
}

/** The Duration of the peer is a plain message; JSON has it as a string. */
function withDurations(answer: unknown): unknown {
  return JSON.parse(
    JSON.stringify(answer, (name, value) =>
      name === 'durationUntilReset' ? `${(value as { seconds?: string }).seconds ?? 0}s` : value,
    ),
  )
}
