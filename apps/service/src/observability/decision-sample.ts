import type { DecisionRecord } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { PolicyDecision, PolicyRequest } from '@sluice/core/policy'
import type { ThreadGroup } from '../thread-messages/message-bus.ts'
import { callerIn, digestOf } from './top-callers.ts'

/** Which decisions somebody looks for. */
export interface DecisionFilter {
  readonly resource?: string | undefined
  readonly rule?: string | undefined
  readonly dimension?: string | undefined
  /** The value of an identity, or the digest of an API key. */
  readonly caller?: string | undefined
  readonly outcome?: 'allowed' | 'denied' | undefined
  /** From then on; milliseconds since 1970. */
  readonly from?: number | undefined
  /** Before then. */
  readonly to?: number | undefined
}

/** Which decisions of a thread are wanted: the newest `most` that match. */
export interface DecisionQuery extends DecisionFilter {
  readonly most: number
}

/** Messages about recent decisions, to every thread. */
export interface DecisionMessages {
  /** Newest first; `node` is empty. */
  'decisions.thread': (query: DecisionQuery) => readonly DecisionRecord[]
  /** The call of a decision, with its secrets: it does not leave the process. */
  'decisions.call': (id: string) => PolicyRequest | undefined
}

/** One decision that was chosen. */
interface Sampled {
  id: string
  readonly request: PolicyRequest
  readonly decision: PolicyDecision
  readonly atMs: number
  readonly durationMs: number
}

/** The sample of one span of time. */
interface Span {
  readonly number: number
  readonly denied: Sampled[]
  readonly allowed: Sampled[]
  deniedCount: number
  allowedCount: number
}

const SPAN_MICROS = 10_000_000

/** 15 minutes. */
const MOST_SPANS = 90

/** Decisions of one span that are kept. */
const MOST_DENIED = 36
const MOST_ALLOWED = 12

/** Number of allowed decisions in a span from which on seven of eight are passed over. */
const BUSY_FROM = 500
const PASSED_MASK = 7

/** Decisions that wait for the id of their answer; most have it at once. */
const MOST_UNNAMED = 64

/** Options of {@link DecisionSample}. */
export interface DecisionSampleParts {
  readonly clock: Clock
  /** Key of the digests of API keys; read at each use. */
  readonly secret: Uint8Array
  /** Unique name of the thread, for decisions whose answers have no id. */
  readonly name: string
}

/**
 * A sample of the decisions of one thread in the last 15 minutes. Of every 10 seconds it keeps a uniform random choice:
 * 36 denied and 12 allowed ones (reservoir sampling), so that a flood does not drive out what came before. It holds at
 * most 4,320 requests with their decisions.
 */
export class DecisionSample {
  readonly #parts: DecisionSampleParts
  readonly #spans: Span[] = []
  readonly #unnamed = new Map<PolicyDecision, Sampled>()
  #current: Span = emptySpan(-1)
  #count = 0
  #passed = 0
  /** State of a xorshift generator: which decisions are kept is no secret. */
  #random = 0x9e3779b9

  constructor(parts: DecisionSampleParts) {
    this.#parts = parts
  }

  /** Lets the main thread ask for the sample. */
  share(threads: Pick<ThreadGroup<DecisionMessages>, 'handle'>): void {
    threads.handle('decisions.thread', (query) => this.list(query))
    threads.handle('decisions.call', (id) => this.callOf(id))
  }

  /** Called for every decision: most are only counted. */
  record(request: PolicyRequest, decision: PolicyDecision, durationMs: number): void {
    // Busy: only one of eight allowed decisions is looked at, because reading the clock is most of the work.
    if (decision.allowed && this.#current.allowedCount >= BUSY_FROM && (++this.#passed & PASSED_MASK) !== 0) return
    const nowMicros = this.#parts.clock.nowMicros()
    const number = Math.floor(nowMicros / SPAN_MICROS)
    if (number !== this.#current.number) this.#begin(number)
    const span = this.#current
    if (decision.allowed) {
      const place = this.#place(++span.allowedCount, MOST_ALLOWED)
      if (place >= 0)
        span.allowed[place] = this.#sampled({
          request,
          decision,
          atMs: Math.floor(nowMicros / MICROS_PER_MS),
          durationMs,
        })
    } else {
      const place = this.#place(++span.deniedCount, MOST_DENIED)
      if (place >= 0)
        span.denied[place] = this.#sampled({
          request,
          decision,
          atMs: Math.floor(nowMicros / MICROS_PER_MS),
          durationMs,
        })
    }
  }

  /** The id under which a decision was answered. */
  name(decision: PolicyDecision, id: string): void {
    if (this.#unnamed.size === 0) return
    const sampled = this.#unnamed.get(decision)
    if (sampled === undefined) return
    sampled.id = id
    this.#unnamed.delete(decision)
  }

  /** The newest decisions that match, newest first. */
  list(query: DecisionQuery): readonly DecisionRecord[] {
    const found: DecisionRecord[] = []
    const secret = this.#parts.secret
    for (const sampled of this.#all()) {
      if (found.length >= query.most) break
      if (sampled.atMs < (query.from ?? 0)) break
      const record = recordOf(sampled, secret)
      if (matches(record, query, secret)) found.push(record)
    }
    return found
  }

  /** The call of a decision. */
  callOf(id: string): PolicyRequest | undefined {
    return this.#all().find((sampled) => sampled.id === id)?.request
  }

  /** Newest first. */
  #all(): readonly Sampled[] {
    const oldest = Math.floor(this.#parts.clock.nowMicros() / SPAN_MICROS) - MOST_SPANS
    return [...this.#spans, this.#current]
      .filter(({ number }) => number > oldest)
      .flatMap(({ denied, allowed }) => [...denied, ...allowed])
      .sort((one, other) => other.atMs - one.atMs || (one.id < other.id ? 1 : -1))
  }

  #begin(number: number): void {
    if (this.#current.number >= 0) this.#spans.push(this.#current)
    if (this.#spans.length >= MOST_SPANS) this.#spans.shift()
    this.#current = emptySpan(number)
  }

  /** Where the decision with this count in its span goes; -1: nowhere. */
  #place(count: number, most: number): number {
    if (count <= most) return count - 1
    let random = this.#random
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    this.#random = random
    const place = (random >>> 0) % count
    return place < most ? place : -1
  }

  #sampled(chosen: Omit<Sampled, 'id'>): Sampled {
    const sampled = { ...chosen, id: `${this.#parts.name}-${this.#count++}` }
    if (this.#unnamed.size >= MOST_UNNAMED) this.#unnamed.clear()
    this.#unnamed.set(chosen.decision, sampled)
    return sampled
  }
}

function emptySpan(number: number): Span {
  return { number, denied: [], allowed: [], deniedCount: 0, allowedCount: 0 }
}

function recordOf({ id, request, decision, atMs, durationMs }: Sampled, secret: Uint8Array): DecisionRecord {
  const { rule, dimension, limit, remaining, retryAfterMs, version, allowed, reason, failure } = decision
  const { apiKey, cost, descriptors, ...call } = request
  const { apiKey: _secret, ...shown } = descriptors ?? {}
  const given = Object.entries({ ...call, ...(descriptors === undefined ? {} : { descriptors: shown }) })
  const body = Object.fromEntries(given.filter(([, value]) => value !== undefined))
  const caller = callerOf(request, dimension, secret)
  return {
    id,
    at: atMs,
    node: '',
    allowed,
    resource: request.resource,
    dimension,
    tokens: cost ?? 1,
    version,
    durationMs: Number(durationMs.toFixed(3)),
    request: { ...body, ...(cost === undefined ? {} : { tokens: cost }) } as unknown as DecisionRecord['request'],
    hidden: apiKey === undefined ? [] : ['apiKey'],
    ...(request.method === undefined ? {} : { method: request.method }),
    ...(request.region === undefined ? {} : { region: request.region }),
    ...(rule === '' ? {} : { rule }),
    ...(caller === undefined ? {} : { caller }),
    ...(allowed ? {} : { reason }),
    ...(Number.isFinite(limit) ? { limit } : {}),
    ...(remaining === null || !Number.isFinite(remaining) ? {} : { remaining }),
    ...(allowed || !Number.isFinite(retryAfterMs) ? {} : { retryAfterMs: Math.ceil(retryAfterMs) }),
    ...(failure === undefined ? {} : { failure: failure.mode }),
  }
}

/** Who was counted; the parts of a joint dimension with `+` between. */
function callerOf(request: PolicyRequest, dimension: string, secret: Uint8Array): string | undefined {
  if (dimension === '') return undefined
  const parts = dimension.split('+').map((part) => {
    const caller = callerIn(request, part)
    return part === 'apiKey' && caller !== undefined ? digestOf(caller, secret) : caller
  })
  return parts.includes(undefined) ? undefined : parts.join('+')
}

/** Whether a decision is one that somebody looks for. */
export function matches(record: DecisionRecord, filter: DecisionFilter, secret: Uint8Array): boolean {
  const { resource, rule, dimension, caller, outcome, from = 0, to = Number.POSITIVE_INFINITY } = filter
  return (
    record.at >= from &&
    record.at < to &&
    (resource === undefined || record.resource === resource || record.rule?.startsWith(`${resource}@`) === true) &&
    (rule === undefined || record.rule === rule) &&
    (dimension === undefined || record.dimension === dimension) &&
    (outcome === undefined || record.allowed === (outcome === 'allowed')) &&
    (caller === undefined || hasCaller(record, caller, secret))
  )
}

function hasCaller({ caller, request }: DecisionRecord, wanted: string, secret: Uint8Array): boolean {
  if (caller === wanted || caller === digestOf(wanted, secret)) return true
  const { user, ip, tenant, service } = request
  return [user, ip, tenant, service].includes(wanted)
}
