import type { ConfigFollower } from '@sluice/config-store'
import type { CheckAnswer, DecisionLike, HeaderProfile, ValidCheckRequest } from '@sluice/contract'
import { batchAnswerJson, checkAnswer, checkAnswerJson, rateLimitHeaders } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import type { PolicyDecision, PolicyEngine, PolicyRequest } from '@sluice/core/policy'
import type { Random } from '@sluice/runtime'
import { isRuntimeError } from '@sluice/runtime'
import type { DecisionSample } from '../../observability/decision-sample.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Settings } from '../../settings/settings.ts'
import type { Answer, AnyHandler, OperationHandlers } from '../handler.ts'
import { jsonAnswer, thenMaybe } from '../handler.ts'
import { problemAnswer } from '../problems.ts'

/** What checks are decided and answered with. */
export interface CheckParts {
  readonly engine: PolicyEngine
  readonly answers: DecisionAnswers
  readonly requestOf: (request: ValidCheckRequest) => PolicyRequest
}

type CheckHandlers = OperationHandlers<'check' | 'checkBatch' | 'checkBatchAlias' | 'peek'>

/** Decisions, one or several at a time: `check`, `checkBatch` and `peek`. */
export function decisionHandlers({ engine, answers, requestOf }: CheckParts): CheckHandlers {
  const tell = (decision: PolicyDecision): Answer => answers.tell(decision)

  const batch: CheckHandlers['checkBatch'] = ({ body }) => {
    // All checks start before the first is awaited, so that they share calls to a remote store.
    const decided = body.requests.map((request) => engine.check(requestOf(request)))
    if (decided.some((decision) => decision instanceof Promise)) {
      return Promise.all(decided).then((decisions) => answers.tellAll(decisions))
    }
    return answers.tellAll(decided as readonly PolicyDecision[])
  }
  return {
    check: ({ body }) => {
      const decided = engine.check(requestOf(body.request))
      return decided instanceof Promise ? decided.then(tell) : tell(decided)
    },
    checkBatch: batch,
    checkBatchAlias: batch,
    peek: ({ body }) => thenMaybe(engine.peek(requestOf(body.request)), tell),
  }
}

/** The answer while no rules are known. */
export const NO_RULES: Answer = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail: 'This node has no rules yet. Nothing was counted. Ask another node, or try again; GET /readyz says why.',
  headers: { 'Retry-After': '1' },
})

/**
 * The handlers, which are not called while no rules are known: the answer is 503 then. Without rules every call would
 * be unlimited, and no failure mode is known either, because that is part of a rule. A caller that is answered 503
 * applies its own failure mode.
 */
export function onceRulesAreKnown<Handlers extends object>(
  follower: Pick<ConfigFollower, 'hasRules'>,
  handlers: Handlers,
): Handlers {
  const gated = Object.entries<AnyHandler>(handlers as Readonly<Record<string, AnyHandler>>).map(
    ([id, handle]): [string, AnyHandler] => [id, (request) => (follower.hasRules ? handle(request) : NO_RULES)],
  )
  return Object.fromEntries(gated) as unknown as Handlers
}

const MICROS_PER_MS = 1000

/** What answers are written with. */
export interface DecisionAnswerParts {
  readonly clock: Clock
  readonly nextId: () => string | undefined
  readonly profile: HeaderProfile
  /** `Retry-After` is longer than the wait by up to so much of it: 0 to 1. */
  readonly retryJitter: number
  readonly random: Random
  /** Learns the id of each decision. Default: none. */
  readonly decisions?: Pick<DecisionSample, 'name'> | undefined
}

/**
 * Turns decisions into answers: 200 when allowed, 429 when not, each with an id of its own and the rate limit headers.
 */
export class DecisionAnswers {
  readonly #clock: Clock
  readonly #nextId: () => string | undefined
  readonly #profile: HeaderProfile
  readonly #retryJitter: number
  readonly #random: Random
  readonly #decisions: DecisionAnswerParts['decisions']

  constructor({ clock, nextId, profile, retryJitter, random, decisions }: DecisionAnswerParts) {
    this.#clock = clock
    this.#nextId = nextId
    this.#profile = profile
    this.#retryJitter = retryJitter
    this.#random = random
    this.#decisions = decisions
  }

  /** The answer to a check. */
  tell(decision: PolicyDecision): Answer {
    return this.tellIn(checkAnswerJson(this.#answerOf(decision)), decision)
  }

  /** The answer to a check that holds more than a decision: `more` is JSON of further members, without braces. */
  tellWith(decision: PolicyDecision, more: string): Answer {
    return this.tellIn(`${checkAnswerJson(this.#answerOf(decision)).slice(0, -1)},${more}}`, decision)
  }

  /** The answer whose body is `json`, which tells of a decision in a form of its own, and a line end. */
  tellIn(json: string, decision: DecisionLike): Answer {
    const body = `${json}\n`
    const headers = this.headersOf(decision)
    headers['Content-Type'] = 'application/json'
    headers['Content-Length'] = String(Buffer.byteLength(body))
    return { status: decision.allowed ? 200 : 429, headers, body }
  }

  /** The rate limit headers of a decision. */
  headersOf(decision: DecisionLike): Record<string, string> {
    const jitter = decision.allowed || this.#retryJitter === 0 ? 0 : this.#retryJitter * this.#random()
    const options = { profile: this.#profile, jitter }
    return rateLimitHeaders(decision, this.#clock.nowMicros() / MICROS_PER_MS, options)
  }

  /** The answer to a batch: always 200, without rate limit headers, because each decision has its own limit. */
  tellAll(decisions: readonly PolicyDecision[]): Answer {
    return jsonAnswer(200, batchAnswerJson(decisions.map((decision) => this.#answerOf(decision))))
  }

  #answerOf(decision: PolicyDecision): CheckAnswer {
    const id = this.#idOrNone()
    if (id !== undefined) this.#decisions?.name(decision, id)
    return checkAnswer(decision, decision.dimension, id)
  }

  /** A decision is answered even if no id can be made for it, such as while the clock is behind. */
  #idOrNone(): string | undefined {
    try {
      return this.#nextId()
    } catch (error) {
      if (isRuntimeError(error)) return undefined
      throw error
    }
  }
}

/** Answers by the settings. */
export function decisionAnswers({
  clock,
  nextId,
  random,
  decisions,
  settings,
}: Pick<ServiceContext, 'clock' | 'nextId' | 'random' | 'decisions'> & {
  readonly settings: Pick<Settings, 'headers' | 'retryJitter'>
}): DecisionAnswers {
  const { headers: profile, retryJitter } = settings
  return new DecisionAnswers({ clock, nextId, random, decisions, profile, retryJitter })
}

/** {@link policyRequestOf} for the requests of a node. */
export function requestsFrom(homeRegion: string | undefined): CheckParts['requestOf'] {
  return (request) => policyRequestOf(request, homeRegion)
}

/** The request as the engine takes it. `homeRegion` is the region of callers that send none. */
export function policyRequestOf(request: ValidCheckRequest, homeRegion: string | undefined): PolicyRequest {
  const { resource, method, ip, user, apiKey, tenant, descriptors, service, region, tier, tokens } = request
  const asked = {
    resource,
    method,
    ip,
    user,
    apiKey,
    tenant,
    descriptors,
    service,
    region: region ?? homeRegion,
    tier,
    cost: tokens,
  }
  // To the engine a field that is undefined is one that is not there; to the compiler it is not. All requests have one
  // shape, which is quicker than each its own.
  return asked as PolicyRequest
}
