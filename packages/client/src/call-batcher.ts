import type { BatchAnswer, Operation, ReportAnswer } from '@sluice/contract'
import { MOST_CHECKS, MOST_REPORTS, OPERATIONS } from '@sluice/contract'
import { ClientError, isClientError } from './errors/client-error.ts'
import type { ServiceRequest } from './http/send-request.ts'
import type { RetryingService, TimeBudget } from './retry/send-with-retry.ts'
import { sendWithRetry } from './retry/send-with-retry.ts'

/** A call that may be sent in a batch. */
export interface BatchableCall {
  /** Its body, JSON. */
  readonly body: string
  readonly isIdempotent: boolean
  readonly budget: TimeBudget
}

interface Waiting extends BatchableCall {
  readonly resolve: (answer: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** How calls of one kind are sent. */
export interface BatchFormat {
  /** Plural noun for messages. */
  readonly noun: string
  /** Operation and body for a single call. */
  readonly alone: { readonly operation: Operation; readonly bodyOf: (body: string) => string }
  /** Operation for several calls: a list of up to `most` in this field. One invalid call rejects the whole batch. */
  readonly together: { readonly operation: Operation; readonly field: string; readonly most: number }
  /** The answer to each of `count` calls that were sent together; undefined if the number does not match. */
  readonly answersOf: (answer: unknown, count: number) => readonly unknown[] | undefined
}

/** Maximum bytes of a UTF-16 code unit in UTF-8: characters of four bytes are two code units. */
const BYTES_PER_CHARACTER = 3

/** Bytes of a body besides its calls, rounded up. */
const FRAME_BYTES = 3072

/**
 * Batches the calls of one kind that are made in the same turn of the event loop, in order. Each call has its own
 * answer and its own timeout: an invalid or aborted call does not affect the others.
 */
export class CallBatcher {
  readonly #form: BatchFormat
  readonly #service: RetryingService
  readonly #turnEnd: (run: () => void) => void
  #waiting: Waiting[] = []

  constructor(form: BatchFormat, service: RetryingService, turnEnd: (run: () => void) => void) {
    this.#form = form
    this.#service = service
    this.#turnEnd = turnEnd
  }

  /** The answer to a call. Rejects with the reason of its budget if that ends, else with the error. */
  ask(call: BatchableCall): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { signal } = call.budget
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      const waiting = { ...call, resolve, reject }
      if (this.#waiting.push(waiting) === 1) this.#turnEnd(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const group of groupsOf(waiting.filter(isWanted), this.#form)) void this.#send(group)
  }

  /** Answers every call of a group. Never rejects. */
  async #send(group: readonly Waiting[]): Promise<void> {
    const [first, ...others] = group
    if (first === undefined) return
    if (others.length === 0) return await this.#sendAlone(first)
    try {
      const answers = await this.#askTogether(group)
      for (const [index, { resolve }] of group.entries()) resolve(answers[index])
    } catch (error) {
      if (isNotUnderstood(error)) await this.#sendApart(group, error)
      else for (const { reject } of group) reject(error)
    }
  }

  async #sendAlone({ body, isIdempotent, budget, resolve, reject }: Waiting): Promise<void> {
    const { operation, bodyOf } = this.#form.alone
    const request: ServiceRequest = { ...PLAIN, operation, body: bodyOf(body), isIdempotent }
    await sendWithRetry(this.#service, request, budget).then(resolve, reject)
  }

  async #askTogether(group: readonly Waiting[]): Promise<readonly unknown[]> {
    const { together, answersOf, noun } = this.#form
    const request: ServiceRequest = {
      ...PLAIN,
      operation: together.operation,
      body: `{"${together.field}":[${group.map(({ body }) => body).join()}]}`,
      isIdempotent: group.every(({ isIdempotent }) => isIdempotent),
    }
    const answer = await sendWithRetry(this.#service, request, new SharedBudget(group))
    const answers = answersOf(answer, group.length)
    if (answers !== undefined) return answers
    const detail = `A batch of ${group.length} ${noun} got another number of answers. Check the proxies in between.`
    throw new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { status: 200, detail })
  }

  /** The service rejected a batch because of some calls: sends those one by one, and the others as a batch again. */
  async #sendApart(group: readonly Waiting[], { errors }: ClientError): Promise<void> {
    const start = `/${this.#form.together.field}/`
    const named = new Set(
      errors.map(({ path }) => (path.startsWith(start) ? Number.parseInt(path.slice(start.length), 10) : -1)),
    )
    const isNamed = (index: number): boolean => named.has(index)
    const isAnyNamed = group.some((_, index) => isNamed(index))
    const wanted = group.map((call, index) => ({ call, isAlone: !isAnyNamed || isNamed(index) }))
    const alone = wanted.filter(({ call, isAlone }) => isAlone && isWanted(call)).map(({ call }) => call)
    const rest = wanted.filter(({ call, isAlone }) => !isAlone && isWanted(call)).map(({ call }) => call)
    await Promise.all([this.#send(rest), ...alone.map((call) => this.#sendAlone(call))])
  }
}

const PLAIN = { parameters: {}, ifMatch: undefined } as const

/** The time budget of a batch: aborted when every call in it is aborted. */
class SharedBudget implements TimeBudget {
  readonly #controller = new AbortController()
  readonly #group: readonly Waiting[]

  constructor(group: readonly Waiting[]) {
    this.#group = group
    let wanted = group.length
    for (const { budget } of group) {
      const leave = (): void => {
        wanted--
        if (wanted === 0) this.#controller.abort(budget.signal.reason)
      }
      budget.signal.addEventListener('abort', leave, { once: true })
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  leftMs(): number {
    return Math.max(0, ...this.#group.filter(isWanted).map(({ budget }) => budget.leftMs()))
  }
}

function isWanted({ budget }: Waiting): boolean {
  return !budget.signal.aborted
}

/** Whether a batch was rejected because of its content. Nothing of it was counted. */
function isNotUnderstood(error: unknown): error is ClientError {
  return isClientError(error) && (error.status === 400 || error.status === 413)
}

/** Splits calls into batches that certainly fit the size limits of the service, in order. */
function groupsOf(waiting: readonly Waiting[], { alone, together }: BatchFormat): readonly (readonly Waiting[])[] {
  const largestGroup = Math.floor((together.operation.maxBodyBytes - FRAME_BYTES) / BYTES_PER_CHARACTER)
  // A call that might be rejected alone must not be part of a batch.
  const largestCall = Math.floor(alone.operation.maxBodyBytes / BYTES_PER_CHARACTER)
  const groups: Waiting[][] = []
  let open: Waiting[] = []
  let size = 0
  for (const call of waiting) {
    const { length } = call.body
    if (length > largestCall) {
      groups.push([call])
      continue
    }
    if (open.length === 0 || open.length === together.most || size + length > largestGroup) {
      open = []
      size = 0
      groups.push(open)
    }
    open.push(call)
    size += length + 1
  }
  return groups
}

/** How checks are sent: a single one unchanged, several as a batch. */
export const CHECK_BATCHES: BatchFormat = {
  noun: 'checks',
  alone: { operation: OPERATIONS.check, bodyOf: (body) => body },
  together: { operation: OPERATIONS.checkBatch, field: 'requests', most: MOST_CHECKS },
  answersOf: (answer, count) => {
    const { answers } = answer as Partial<BatchAnswer>
    return Array.isArray(answers) && answers.length === count ? answers : undefined
  },
}

/** How reports are sent: always as a list. Their answer only confirms that they were counted. */
export const REPORT_BATCHES: BatchFormat = {
  noun: 'reports',
  alone: { operation: OPERATIONS.report, bodyOf: (body) => `{"reports":[${body}]}` },
  together: { operation: OPERATIONS.report, field: 'reports', most: MOST_REPORTS },
  answersOf: (answer, count) =>
    (answer as Partial<ReportAnswer>).count === count ? Array.from({ length: count }) : undefined,
}
