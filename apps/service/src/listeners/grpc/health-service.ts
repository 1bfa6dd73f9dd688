import type { Sleep } from '@sluice/runtime'
import type { Readiness } from '../../operations/health.ts'
import type { GrpcCall } from './grpc-call.ts'
import { GrpcError } from './grpc-status.ts'
import { ProtobufReader, ProtobufWriter, tagOf, WIRE_TYPE } from './protobuf.ts'

/** `grpc.health.v1.HealthCheckResponse.ServingStatus` */
const SERVING = { serving: 1, notServing: 2, serviceUnknown: 3 } as const

type Serving = (typeof SERVING)[keyof typeof SERVING]

/** The empty name stands for the whole server. */
const SERVICES: ReadonlySet<string> = new Set([
  '',
  'envoy.service.ratelimit.v3.RateLimitService',
  'grpc.health.v1.Health',
])

const SERVICE_TAG = tagOf(1, WIRE_TYPE.bytes)

/** How often the health of watched services is looked at. */
const WATCH_EVERY_MS = 1000

/** Most calls of `Watch` in a thread: each holds a stream. */
const MAX_WATCHES = 1000

const frames = new Map<Serving, Buffer>(
  Object.values(SERVING).map((serving) => {
    const writer = new ProtobufWriter(16)
    writer.number(1, serving)
    return [serving, writer.takeFrame()]
  }),
)

/** The gRPC health service: whether calls should be sent here, as `/readyz` says it. */
export class HealthService {
  readonly #readiness: Pick<Readiness, 'answer'>
  readonly #sleep: Sleep
  readonly #watches = new Map<GrpcCall, Serving>()
  readonly #stopping = new AbortController()
  #isLooking = false

  constructor(readiness: Pick<Readiness, 'answer'>, sleep: Sleep) {
    this.#readiness = readiness
    this.#sleep = sleep
  }

  async check(message: Buffer, call: GrpcCall): Promise<void> {
    if (!SERVICES.has(readService(message))) throw new GrpcError('NOT_FOUND', 'The service is unknown')
    call.answer(frames.get(await this.#serving())!)
  }

  /** Sends the health now and after every change; for an unknown service once, because it stays unknown. */
  async watch(message: Buffer, call: GrpcCall): Promise<void> {
    const isKnown = SERVICES.has(readService(message))
    if (this.#watches.size >= MAX_WATCHES)
      throw new GrpcError('RESOURCE_EXHAUSTED', `Too many watches: expected at most ${MAX_WATCHES}`)
    // It counts from now on. The first message is the current health; changes follow.
    this.#watches.set(call, SERVING.serviceUnknown)
    this.#tell(call, isKnown ? await this.#serving() : SERVING.serviceUnknown)
    if (!isKnown || this.#isLooking) return
    this.#isLooking = true
    while (this.#watches.size > 0 && !this.#stopping.signal.aborted) {
      await this.#sleep(WATCH_EVERY_MS, this.#stopping.signal).catch(() => undefined)
      await this.look()
    }
    this.#isLooking = false
  }

  /** Tells all watches what has changed. */
  async look(): Promise<void> {
    if (this.#watches.size === 0) return
    const serving = await this.#serving()
    for (const [call, told] of this.#watches) {
      if (told !== SERVING.serviceUnknown && told !== serving) this.#tell(call, serving)
    }
  }

  /** A call has ended. */
  forget(call: GrpcCall): void {
    this.#watches.delete(call)
  }

  /** Ends all watches. */
  stop(): void {
    this.#stopping.abort()
    for (const call of [...this.#watches.keys()]) call.fail(new GrpcError('UNAVAILABLE', 'This node is stopping'))
  }

  #tell(call: GrpcCall, serving: Serving): void {
    if (call.hasEnded) return
    this.#watches.set(call, serving)
    // The next change would wait in memory for a client that does not read, so the call ends. The client may repeat it.
    if (!call.send(frames.get(serving)!)) call.fail(new GrpcError('RESOURCE_EXHAUSTED', 'The client reads too slowly'))
  }

  async #serving(): Promise<Serving> {
    const { status } = await this.#readiness.answer()
    return status === 200 ? SERVING.serving : SERVING.notServing
  }
}

function readService(message: Buffer): string {
  const reader = new ProtobufReader(message)
  let service = ''
  while (reader.hasMore) {
    const tag = reader.tag()
    if (tag === SERVICE_TAG) service = reader.string()
    else reader.skip(tag)
  }
  return service
}
