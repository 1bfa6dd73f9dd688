import type { ValidEnvoyRequest } from '@sluice/contract'
import { envoyMetadata } from '@sluice/contract'
import { MICROS_PER_SECOND } from '@sluice/core/internal'
import type { DescriptorDecision } from '@sluice/core/policy'
import type { Mode, Answer as StoreAnswer } from '@sluice/core/store'
import type { InFlight } from '@sluice/runtime'
import type { DecisionAnswers } from '../../operations/check/check.ts'
import { decisionAnswers, NO_RULES } from '../../operations/check/check.ts'
import { toldBy } from '../../operations/check/envoy-check.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { GrpcSettings } from '../../settings/settings.ts'
import type { GrpcCall } from './grpc-call.ts'
import { timeoutMsOf } from './grpc-call.ts'
import { GrpcError, grpcErrorOfAnswer } from './grpc-status.ts'
import { ProtobufReader, ProtobufWriter } from './protobuf.ts'
import { readRateLimitRequest, writeRateLimitResponse } from './rate-limit-messages.ts'

/** What {@link RateLimitService} needs. */
export interface RateLimitParts {
  readonly context: ServiceContext
  readonly settings: Pick<GrpcSettings, 'deadlineMs' | 'storeFailure'>
  readonly inFlightLimit: InFlight
}

/** What a call may take beyond the store's deadline, such as to give units back. Envoy gives up after 20 ms. */
const MARGIN_MS = 2

/** When this thread was busy, the store needs a moment to notice that its deadline has passed. */
const BUSY_MS = 2

/** A usual answer with headers fits. */
const ANSWER_BYTES = 512

const URGENT = { isUrgent: true }

const NO_ANSWER = 'The store of the counters did not answer in time.'

const OVERLOADED = 'Too many calls are in flight. Nothing was counted. Ask another node, or try again.'

/** `envoy.service.ratelimit.v3.RateLimitService`: decides as `POST /json` does. */
export class RateLimitService {
  readonly #parts: RateLimitParts
  readonly #answers: DecisionAnswers
  readonly #writer = new ProtobufWriter(ANSWER_BYTES)

  constructor(parts: RateLimitParts) {
    this.#parts = parts
    this.#answers = decisionAnswers(parts.context)
  }

  /** Answers at once where the store does. */
  shouldRateLimit(message: Buffer, call: GrpcCall): void | Promise<void> {
    const { context, inFlightLimit } = this.#parts
    const timeoutMs = timeoutMsOf(call.headers)
    const request = readRateLimitRequest(new ProtobufReader(message))
    if (!context.follower.hasRules) throw grpcErrorOfAnswer(NO_RULES)
    if (!inFlightLimit.tryEnter()) throw new GrpcError('UNAVAILABLE', OVERLOADED)
    let decided: StoreAnswer<Mode, DescriptorDecision>
    try {
      decided = context.engine.decideDescriptors(request, URGENT)
    } catch (error) {
      inFlightLimit.leave()
      throw error
    }
    if (decided instanceof Promise) return this.#answerLater(decided, request, { call, timeoutMs })
    inFlightLimit.leave()
    this.#answer(decided, request, call)
  }

  async #answerLater(
    decided: Promise<DescriptorDecision>,
    request: ValidEnvoyRequest,
    { call, timeoutMs }: { readonly call: GrpcCall; readonly timeoutMs: number | undefined },
  ): Promise<void> {
    const { context, settings, inFlightLimit } = this.#parts
    const { deadlineMs } = settings
    const done = new AbortController()
    const isShort = timeoutMs !== undefined && timeoutMs < deadlineMs
    const status = isShort ? 'DEADLINE_EXCEEDED' : 'UNAVAILABLE'
    const late = isShort
      ? context.sleep(timeoutMs, done.signal)
      : context.sleep(deadlineMs + MARGIN_MS, done.signal).then(() => context.sleep(BUSY_MS, done.signal))
    void late.then(
      () => call.fail(new GrpcError(status, NO_ANSWER)),
      () => undefined,
    )
    try {
      this.#answer(await decided, request, call)
    } finally {
      done.abort()
      inFlightLimit.leave()
    }
  }

  #answer(decision: DescriptorDecision, request: ValidEnvoyRequest, call: GrpcCall): void {
    if (call.hasEnded) return
    const { settings, context } = this.#parts
    if (decision.failure !== undefined && settings.storeFailure === 'error') {
      call.fail(new GrpcError('UNAVAILABLE', NO_ANSWER))
      return
    }
    const nowSeconds = context.clock.nowMicros() / MICROS_PER_SECOND
    const headers = this.#answers.headersOf(toldBy(decision, request, nowSeconds))
    const dynamicMetadata = envoyMetadata(decision, request)
    writeRateLimitResponse(this.#writer, decision, { headers, dynamicMetadata })
    call.answer(this.#writer.takeFrame())
  }
}
