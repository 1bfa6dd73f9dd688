import type { CheckRequest, Descriptors, IdentityName } from '../checks/check-request.ts'
import { CHECK_PROPERTIES, CHECK_RULES, MOST_TOKENS } from '../checks/check-request.ts'
import type { InvalidBody, Parsed } from '../schema/body-parser.ts'
import { bodyForm, formProblems, formWithout, hasForm } from '../schema/body-parser.ts'
import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import type { FieldProblem } from '../schema/value-schemas.ts'
import { count, listOf, NOTE, whole, words } from '../schema/value-schemas.ts'

/** A caller, with one name for each identity; what was not given is not there. */
export interface NamedCaller extends Pick<CheckRequest, IdentityName>, Partial<Pick<CheckRequest, 'resource'>> {
  readonly descriptors?: Descriptors
}

export const COUNTER = answerSchema('Counter', {
  description: 'How one counter stands.',
  examples: [{ limit: 1000, used: 477, remaining: 523, resetAt: '2025-11-05T10:05:00Z', blockedUntil: null }],
  required: {
    limit: count('Units announced to callers as the limit.'),
    used: {
      description: 'Whole units in use. Null when the store did not answer.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    remaining: {
      description:
        'Whole units left now; a burst may make them more or fewer than the limit. Null when the store did not answer.',
      type: ['integer', 'null'],
      minimum: 0,
    },
    resetAt: {
      description:
        'When the full limit is there again if nothing more is taken, in whole seconds rounded up. Null when the ' +
        'store did not answer.',
      type: ['string', 'null'],
    },
    blockedUntil: {
      description: 'Until when the caller is blocked under the rule, in the same form. Null when it is not.',
      type: ['string', 'null'],
    },
  },
})
export interface Counter extends Infer<typeof COUNTER> {}

const USAGE = answerSchema('Usage', {
  description: 'What one rule has counted for one caller.',
  examples: [
    {
      rule: '/api/v1/data@user',
      resource: '/api/v1/data',
      dimension: 'user',
      entity: 'user-123',
      counters: [COUNTER.example],
    },
  ],
  required: {
    rule: words('Name of the rule.'),
    resource: words('The resource of the rule.'),
    dimension: words('Who it counts.'),
    entity: words('The caller.'),
    counters: listOf<Counter>('One for each window of the rule.', COUNTER.ref),
  },
})
export interface Usage extends Infer<typeof USAGE> {}

export const USAGE_ANSWER = answerSchema('UsageAnswer', {
  description: 'What was counted for the callers asked for.',
  examples: [{ version: 12, usage: [USAGE.example] }],
  required: {
    version: count('Number of the rule set by which it was looked up.'),
    usage: listOf<Usage>('One for each rule and caller.', USAGE.ref),
  },
})
export interface UsageAnswer extends Infer<typeof USAGE_ANSWER> {}

const CALLER = CHECK_PROPERTIES.optional

export const RESET_REQUEST = requestSchema('ResetRequest', {
  description:
    'Whose counters start anew: of the rules that the resource matches, or of all without one. At least one part.',
  examples: [{ user: 'user-123', resource: '/api/v1/data', note: 'import of last night' }],
  optional: {
    user: CALLER.user,
    apiKey: CALLER.apiKey,
    ip: CALLER.ip,
    tenant: CALLER.tenant,
    service: CALLER.service,
    userId: CALLER.userId,
    clientIp: CALLER.clientIp,
    tenantId: CALLER.tenantId,
    descriptors: CALLER.descriptors,
    resource: CHECK_PROPERTIES.required.resource,
    units: whole('Units to give back, those used last first. Default: all, and counting starts anew.', 1, MOST_TOKENS),
    note: NOTE,
  },
})
export interface ResetRequest extends Infer<typeof RESET_REQUEST> {}

export const RESET_ANSWER = answerSchema('ResetAnswer', {
  description: 'What a reset did.',
  examples: [{ count: 1 }],
  required: { count: count('Rules whose counters start anew for these callers; 0 when no rule counts them.') },
})
export interface ResetAnswer extends Infer<typeof RESET_ANSWER> {}

const CALLER_FIELDS = ['user', 'apiKey', 'ip', 'tenant', 'service', 'resource', 'descriptors'] as const

const RESET_FORM = bodyForm(RESET_REQUEST, 'a JSON object that says who is meant', CHECK_RULES)

const USAGE_FORM = formWithout(formWithout(RESET_FORM, 'note'), 'units')

/** Parses the parameters of a query into the caller whose usage is requested, or into all their problems. */
export function parseUsageQuery(query: Readonly<Record<string, string>>): Parsed<{ readonly who: NamedCaller }> {
  const { descriptors: text, ...rest } = query
  const descriptors = text === undefined ? undefined : parsedJson(text)
  if (descriptors === NOT_JSON) return notJson()
  const caller = descriptors === undefined ? rest : { ...rest, descriptors }
  if (!hasForm(caller, USAGE_FORM)) return inQuery(formProblems(caller, USAGE_FORM))
  const who = namedCaller(caller)
  return Object.keys(who).length === 0 ? inQuery(noCaller()) : { ok: true, who }
}

/** Turns the parsed JSON of a body into whose counters start anew, or into everything that is wrong with it. */
export function parseResetRequest(
  body: unknown,
): Parsed<{ readonly who: NamedCaller; readonly units: number | undefined; readonly note: string | undefined }> {
  if (!hasForm(body, RESET_FORM)) return formProblems(body, RESET_FORM)
  const who = namedCaller(body)
  return Object.keys(who).length === 0 ? noCaller() : { ok: true, who, units: body.units, note: body.note }
}

/** The caller in a body or query whose form is right. */
function namedCaller(fields: ResetRequest): NamedCaller {
  const { userId, clientIp, tenantId } = fields
  const named = { ...fields, user: fields.user ?? userId, ip: fields.ip ?? clientIp, tenant: fields.tenant ?? tenantId }
  const given = CALLER_FIELDS.filter((name) => named[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, named[name]]))
}

function noCaller(): InvalidBody {
  const problem = { path: '', received: 'none', expected: `at least one of ${CALLER_FIELDS.join(', ')}` }
  return { ok: false, problems: [problem], unlisted: 0 }
}

const NOT_JSON = Symbol('not JSON')

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return NOT_JSON
  }
}

function notJson(): InvalidBody {
  const expected = 'a JSON object of descriptors, by name, such as {"model":"large"}'
  return { ok: false, problems: [{ path: '?descriptors', received: 'invalid JSON', expected }], unlisted: 0 }
}

/** The same problems, about parameters of a query. */
function inQuery({ problems, unlisted }: InvalidBody): InvalidBody {
  const there = (problem: FieldProblem): FieldProblem => ({ ...problem, path: problem.path.replace(/^\/?/, '?') })
  return { ok: false, problems: problems.map(there), unlisted }
}
