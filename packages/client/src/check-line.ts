import type { BatchAnswer } from '@sluice/contract'
import { MOST_CHECKS, OPERATIONS } from '@sluice/contract'
import { ClientError, isClientError } from './client-error.ts'
import type { ServiceRequest } from './exchange.ts'
import { type RepeatedService, repeatedExchange, type TimeBudget } from './repeated-exchange.ts'

/** A check to be asked, and for how long its caller waits. */
export interface LinedCheck {
  /** Its body, JSON. */
  readonly body: string
  readonly isHarmlessTwice: boolean
  readonly budget: TimeBudget
}

interface Waiting extends LinedCheck {
  readonly resolve: (answer: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** A character is at most so many bytes in UTF-8; of those that are more, JSON has two. */
const BYTES_PER_CHARACTER = 3

/** Characters of a batch that the service takes for sure. */
const LARGEST_BATCH = Math.floor(OPERATIONS.checkBatch.maxBodyBytes / BYTES_PER_CHARACTER) - 1024

/** Characters of a check that the service takes for sure: one that it might refuse alone must not pass in a batch. */
const LARGEST_CHECK = Math.floor(OPERATIONS.check.maxBodyBytes / BYTES_PER_CHARACTER)

/**
 * Gathers the checks of one turn of the event loop and sends them as one batch, in their order. A check that is alone goes as
 * it is. Every check has its own answer and its own end: one that cannot be understood, or that is ended by its caller, leaves
 * the others alone.
 */
export class CheckLine {
  readonly #service: RepeatedService
  readonly #turnEnd: (run: () => void) => void
  #waiting: Waiting[] = []

  constructor(service: RepeatedService, turnEnd: (run: () => void) => void) {
    this.#service = service
    this.#turnEnd = turnEnd
  }

  /** The answer to a check. Rejects with the reason of its budget when that ends, else with what went wrong. */
  ask(check: LinedCheck): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const { signal } = check.budget
      if (signal.aborted) {
        reject(signal.reason)
        return
      }
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      const waiting = { ...check, resolve, reject }
      if (this.#waiting.push(waiting) === 1) this.#turnEnd(() => this.#flush())
    })
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const group of groupsOf(waiting.filter(isWanted))) void this.#send(group)
  }

  /** Answers every check of a group. Never rejects. */
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

  async #sendAlone({ body, isHarmlessTwice, budget, resolve, reject }: Waiting): Promise<void> {
    const request: ServiceRequest = { ...PLAIN, operation: OPERATIONS.check, body, isHarmlessTwice }
    await repeatedExchange(this.#service, request, budget).then(resolve, reject)
  }

  async #askTogether(group: readonly Waiting[]): Promise<readonly unknown[]> {
    const request: ServiceRequest = {
      ...PLAIN,
      operation: OPERATIONS.checkBatch,
      body: `{"requests":[${group.map(({ body }) => body).join()}]}`,
      isHarmlessTwice: group.every(({ isHarmlessTwice }) => isHarmlessTwice),
    }
    const answer = await repeatedExchange(this.#service, request, new SharedBudget(group))
    const { answers } = answer as Partial<BatchAnswer>
    if (Array.isArray(answers) && answers.length === group.length) return answers
    const detail = `A batch of ${group.length} checks did not get as many answers. Look what stands before the service.`
    throw new ClientError('SLUICE_CLIENT_UNEXPECTED_ANSWER', { status: 200, detail })
  }

  /** Nothing of a batch was counted because of some of its checks: those go alone, and the others once more. */
  async #sendApart(group: readonly Waiting[], { errors }: ClientError): Promise<void> {
    const named = new Set(errors.map(({ path }) => Number(/^\/requests\/(\d+)(?:\/|$)/.exec(path)?.[1] ?? -1)))
    const isNamed = (index: number): boolean => named.has(index)
    const isAnyNamed = group.some((_, index) => isNamed(index))
    const wanted = group.map((check, index) => ({ check, isAlone: !isAnyNamed || isNamed(index) }))
    const alone = wanted.filter(({ check, isAlone }) => isAlone && isWanted(check)).map(({ check }) => check)
    const rest = wanted.filter(({ check, isAlone }) => !isAlone && isWanted(check)).map(({ check }) => check)
    await Promise.all([this.#send(rest), ...alone.map((check) => this.#sendAlone(check))])
  }
}

const PLAIN = { parameters: {}, ifMatch: undefined } as const

/** The time of checks that go together: it ends when nobody waits any more. */
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

/** Whether a batch was refused for what is in it: nothing of it was counted then. */
function isNotUnderstood(error: unknown): error is ClientError {
  return isClientError(error) && (error.status === 400 || error.status === 413)
}

/** Groups that the service takes as one batch, in their order. */
function groupsOf(waiting: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const groups: Waiting[][] = []
  let open: Waiting[] = []
  let size = 0
  for (const check of waiting) {
    const { length } = check.body
    if (length > LARGEST_CHECK) {
      groups.push([check])
      continue
    }
    if (open.length === 0 || open.length === MOST_CHECKS || size + length > LARGEST_BATCH) {
      open = []
      size = 0
      groups.push(open)
    }
    open.push(check)
    size += length + 1
  }
  return groups
}
