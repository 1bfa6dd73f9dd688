import type { FieldProblem } from '@sluice/contract'
import { checkAnswer, mayDo, parseCheckRequest, parseResetRequest } from '@sluice/contract'
import type { PolicyDecision, PolicyRequest } from '@sluice/core/policy'
import { narrowingOf } from '../../auth/tenant-scope.ts'
import { policyRequestOf } from '../../operations/check/check.ts'
import type { AnyHandler, OperationHandlers } from '../../operations/handler.ts'
import { thenMaybe } from '../../operations/handler.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { CommandEntry } from './connection-commands.ts'
import type { ReplyValue } from './reply-writer.ts'
import { ReplyError } from './reply-writer.ts'
import type { RespSession } from './resp-session.ts'

/** What the commands about rules work with. */
export interface SluiceCommandParts {
  readonly context: Pick<ServiceContext, 'engine' | 'follower' | 'settings'>
  /** Resets counters, as the admin API does. */
  readonly reset: OperationHandlers<'reset'>['reset']
}

/** `SLUICE.*`: the same operations as the HTTP API, with its fields as names and values. */
export function sluiceCommands({ context, reset }: SluiceCommandParts): Readonly<Record<string, CommandEntry>> {
  const { engine, follower } = context
  const requestOf = (session: RespSession, args: readonly string[]): PolicyRequest => {
    if (!follower.hasRules) throw new ReplyError('NOTREADY This node has no rules yet. Nothing was counted.')
    const parsed = parseCheckRequest(narrowed('check', session, fieldsOf(args)))
    if (!parsed.ok) throw invalid(parsed.problems)
    return policyRequestOf(parsed.request, context.settings.region)
  }
  return {
    'SLUICE.CHECK': {
      run: (session, args) => thenMaybe(engine.check(requestOf(session, args)), decisionReply),
      arity: -3,
      firstKey: 0,
    },
    'SLUICE.PEEK': {
      run: (session, args) => thenMaybe(engine.peek(requestOf(session, args)), decisionReply),
      arity: -3,
      firstKey: 0,
    },
    'SLUICE.RESET': {
      run: async (session, args) => {
        const { principal, remoteAddress } = session
        if (principal === undefined)
          throw new ReplyError('NOAUTH SLUICE.RESET needs AUTH with a key of the role editor.')
        if (!mayDo(principal.role, 'editor')) {
          throw new ReplyError(`NOPERM This key has the role "${principal.role}". Use one with the role "editor".`)
        }
        const body = parseResetRequest(narrowed('reset', session, fieldsOf(args)))
        if (!body.ok) throw invalid(body.problems)
        const { signal } = new AbortController()
        const request = { body, parameters: {}, headers: {}, precondition: undefined, principal, remoteAddress, signal }
        const answer = await (reset as AnyHandler)(request)
        const text = 'body' in answer ? answer.body : '{}'
        const { count, detail } = JSON.parse(text) as { readonly count?: number; readonly detail?: string }
        if (count === undefined) throw new ReplyError(`ERR ${detail}`)
        return count
      },
      arity: -3,
      firstKey: 0,
    },
  }
}

/** The answer of the HTTP API as a map. `allowed` is 1 or 0. */
function decisionReply(decision: PolicyDecision): ReplyValue {
  const { allowed, reason, rule, dimension, limit, remaining, resetAt, retryAfter } = checkAnswer(
    decision,
    decision.dimension,
  )
  return { allowed: allowed ? 1 : 0, reason, rule, dimension, limit, remaining, resetAt, retryAfter }
}

/** Fields by their names in lower case: names of commands and options are not case-sensitive in Redis. */
const FIELDS: ReadonlyMap<string, string> = new Map(
  [
    ...['user', 'userId', 'apiKey', 'ip', 'clientIp', 'tenant', 'tenantId', 'service'],
    ...['resource', 'method', 'tokens', 'region', 'tier', 'note'],
  ].map((name) => [name.toLowerCase(), name]),
)

/** `tokens` under the name that rate limiters for Redis give it. */
const COST = 'cost'

const DESCRIPTOR = 'descriptor'

/** `RESOURCE /orders USER u1 COST 2 DESCRIPTOR model large` as the body of a request. */
function fieldsOf(args: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  const descriptors: Record<string, unknown> = Object.create(null)
  for (let at = 0; at < args.length; ) {
    const given = args[at]!
    const name = given.toLowerCase()
    const length = name === DESCRIPTOR ? 3 : 2
    if (at + length > args.length) throw new ReplyError(`ERR ${given.slice(0, 64)} has no value`)
    const value = args[at + length - 1]!
    if (name === DESCRIPTOR) descriptors[args[at + 1]!] = value
    else {
      const field = name === COST ? 'tokens' : (FIELDS.get(name) ?? given)
      if (Object.hasOwn(fields, field)) throw new ReplyError(`ERR ${given.slice(0, 64)} is given twice`)
      fields[field] = field === 'tokens' && /^\d{1,15}$/.test(value) ? Number(value) : value
    }
    at += length
  }
  return Object.keys(descriptors).length === 0 ? fields : { ...fields, descriptors: { ...descriptors } }
}

/** For the key of a tenant: the same request about that tenant. */
function narrowed(operation: 'check' | 'reset', { principal }: RespSession, body: unknown): unknown {
  const narrow = narrowingOf(operation)
  if (principal?.tenant === undefined || narrow === undefined) return body
  const input = narrow({ parameters: {}, body }, principal.tenant)
  if (!('status' in input)) return input.body
  throw new ReplyError(`NOPERM ${(JSON.parse(input.body) as { readonly detail: string }).detail}`)
}

function invalid(problems: readonly FieldProblem[]): ReplyError {
  const texts = problems.map(({ path, received, expected }) => {
    return `${path === '' ? 'the command' : path.slice(1)}: received ${received}; expected ${expected}`
  })
  return new ReplyError(`ERR ${texts.join('. ')}`)
}
