import type { CheckRequest, Operation } from '@sluice/contract'
import { OPERATIONS } from '@sluice/contract'
import type { OptionForm } from '@sluice/core/options'
import { ANY, checkSignal, FLAG, isWhole, nearestName, OBJECT } from '@sluice/core/options'
import type { Client } from './client.ts'
import { uncheckedClient } from './client.ts'
import type { ClientOptions } from './client-options.ts'
import { FAILURE_MODE, resolveOptions, TIMEOUT } from './client-options.ts'
import type { CheckedTaker } from './errors/client-option-check.ts'
import { asClientError, checkOptions, invalidOption, optionTaker } from './errors/client-option-check.ts'

/** A client for the service at `url`. Sends nothing before the first call. Throws for invalid options. */
export function createClient(options: ClientOptions): Client {
  return checkedClient(uncheckedClient(resolveOptions(options)))
}

/**
 * A client that checks the arguments of its calls: invalid ones are rejected with `SLUICE_CLIENT_INVALID_OPTION`, and
 * nothing is sent.
 */
function checkedClient(client: Client): Client {
  return {
    check: checked('check', client.check),
    batch: checked('batch', client.batch),
    peek: checked('peek', client.peek),
    reserve: checked('reserve', client.reserve),
    settle: checked('settle', client.settle),
    release: checked('release', client.release),
    acquire: async (request, options) => {
      checkCall('acquire', request, options)
      checkWait(request.maxWaitMs)
      return await client.acquire(request, options)
    },
    heartbeat: checked('heartbeat', client.heartbeat),
    report: async (ended, options) => {
      checkCall('report', ended, options)
      await client.report(ended, options)
    },
    call: async (id, ...input) => {
      checkedOperation(id, input[0])
      return await client.call(id, ...input)
    },
    pages: (id, ...input) => {
      checkPaged(id, input[0])
      return client.pages(id, ...input)
    },
    items: (id, ...input) => {
      checkPaged(id, input[0])
      return client.items(id, ...input)
    },
    stream: (id, ...input) => {
      checkStream(id, input[0])
      return client.stream(id, ...input)
    },
  }
}

/** A call with a request and options. */
function checked<Asked, Options, Answer>(
  name: RequestCall,
  call: (asked: Asked, options?: Options) => Promise<Answer>,
): (asked: Asked, options?: Options) => Promise<Answer> {
  return async (asked, options) => {
    checkCall(name, asked, options)
    return await call(asked, options)
  }
}

/** Options of every call. The core checks signals. */
const CALL_FORMS = { signal: ANY, timeoutMs: TIMEOUT } as const

const OTHER_NAMES = { timeout: 'timeoutMs', abortSignal: 'signal', controller: 'signal' } as const

const REVISION: OptionForm = {
  expected: 'a revision: a whole number from 0, or "*"',
  accepts: (value) => value === '*' || isWhole(value, 0, Number.MAX_SAFE_INTEGER),
}

const INPUT = optionTaker({
  name: 'call',
  example: '{ parameters: { name }, body }',
  forms: { parameters: OBJECT, body: ANY, ifMatch: REVISION, ...CALL_FORMS },
})

const CHECK_EXAMPLE = '{ userId: "user-123", resource: "/api/v1/data" }'
const SLOT_EXAMPLE = '{ reservationId }'

/** The calls with a request and options. */
export type RequestCall = Exclude<keyof Client, 'call' | 'pages' | 'items' | 'stream'>

interface CheckedCall {
  /** Form of a request. */
  readonly request: string
  readonly options: CheckedTaker
}

const CALLS: Readonly<Record<RequestCall, CheckedCall>> = {
  check: callOf('check', CHECK_EXAMPLE, { failureMode: FAILURE_MODE, batch: FLAG }),
  peek: callOf('peek', CHECK_EXAMPLE, { failureMode: FAILURE_MODE }),
  batch: callOf('batch', `[${CHECK_EXAMPLE}]`, { failureMode: FAILURE_MODE }),
  reserve: callOf('reserve', CHECK_EXAMPLE),
  settle: callOf('settle', '{ reservationId, tokens: 3 }'),
  release: callOf('release', SLOT_EXAMPLE),
  acquire: callOf('acquire', CHECK_EXAMPLE),
  heartbeat: callOf('heartbeat', SLOT_EXAMPLE),
  report: callOf('report', '{ resource: "/api/v1/data", failed: true }'),
}

function callOf(name: string, request: string, more: Readonly<Record<string, OptionForm>> = {}): CheckedCall {
  const forms = { ...CALL_FORMS, ...more }
  return { request, options: optionTaker({ name, example: '{ timeoutMs: 500 }', forms, otherNames: OTHER_NAMES }) }
}

/**
 * Throws `SLUICE_CLIENT_INVALID_OPTION` unless a call has a plausible request and valid options. The service checks the
 * content of the request.
 */
function checkCall(name: RequestCall, request: unknown, options: unknown): void {
  const call = CALLS[name]
  if (name === 'batch') checkList(request, call.request)
  else if (!isPlain(request)) throw noRequest(name, request, call.request)
  if (options !== undefined) checkCallOptions(options, call.options)
}

/**
 * The operation with this id. Throws `SLUICE_CLIENT_INVALID_OPTION` if it does not exist, or its arguments are invalid.
 */
function checkedOperation(id: string, input: unknown): Operation {
  if (typeof id !== 'string' || !Object.hasOwn(OPERATIONS, id)) throw noOperation(id)
  const operation: Operation = OPERATIONS[id as keyof typeof OPERATIONS]
  if (input === undefined) return operation
  // Parameters are often passed next to "parameters" by mistake.
  const misplaced = Object.keys(operation.parameters).map((name) => [name, 'parameters'] as const)
  checkCallOptions(input, { ...INPUT, otherNames: { ...OTHER_NAMES, ...Object.fromEntries(misplaced) } })
  return operation
}

/** Throws `SLUICE_CLIENT_INVALID_OPTION` unless the operation with this id is paged and its arguments are valid. */
function checkPaged(id: string, input: unknown): void {
  if (checkedOperation(id, input).isPaged) return
  throw invalidOption({ problem: `"${id}" has no pages`, expected: 'an operation that lists', action: useCall(id) })
}

/** Throws `SLUICE_CLIENT_INVALID_OPTION` unless the operation with this id streams and its arguments are valid. */
function checkStream(id: string, input: unknown): void {
  if (checkedOperation(id, input).streams) return
  throw invalidOption({ problem: `"${id}" is no stream`, expected: '"live"', action: useCall(id) })
}

function useCall(id: string): string {
  return `Use call("${id}").`
}

/** Throws `SLUICE_CLIENT_INVALID_OPTION` unless the wait of a request can be added to the timeout of the call. */
function checkWait(maxWaitMs: unknown): void {
  if (maxWaitMs === undefined || isWhole(maxWaitMs, 0, Number.MAX_SAFE_INTEGER)) return
  throw invalidOption({
    problem: '"maxWaitMs" of the request of acquire cannot be used',
    received: maxWaitMs,
    expected: 'milliseconds: a whole number from 0',
  })
}

function checkCallOptions(options: unknown, taker: CheckedTaker): void {
  checkOptions(options, taker)
  const { signal } = options as { readonly signal?: unknown }
  if (signal !== undefined) asClientError(() => checkSignal(signal))
}

function checkList(requests: unknown, example: string): asserts requests is readonly CheckRequest[] {
  if (!Array.isArray(requests)) throw noRequest('batch', requests, `a list such as ${example}`)
  const wrong = requests.findIndex((request) => !isPlain(request))
  if (wrong >= 0) throw noRequest('batch', requests[wrong], `checks such as ${example}`)
}

/** Whether it is an object of fields. */
function isPlain(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function noRequest(name: string, received: unknown, example: string): Error {
  return invalidOption({
    problem: `the request of ${name} cannot be used`,
    // A string may be an identity or a key.
    ...(typeof received === 'string' ? {} : { received }),
    expected: example.startsWith('{') ? `an object such as ${example}` : example,
  })
}

function noOperation(id: unknown): Error {
  const near = typeof id === 'string' ? nearestName(id, Object.keys(OPERATIONS)) : undefined
  return invalidOption({
    problem: 'there is no such operation',
    received: id,
    expected: 'the id of one, such as "putTier"',
    action: near === undefined ? 'Each "operationId" of /openapi.json is one.' : `Did you mean "${near}"?`,
  })
}
