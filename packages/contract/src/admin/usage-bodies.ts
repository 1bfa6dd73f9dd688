import type { CheckField, CheckRequest, Descriptors, IdentityName } from '../checks/check-request.ts'
import { CHECK_FIELDS, identityProblems } from '../checks/check-request.ts'
import type { BodyForm, Field, Parsed, RefusedBody } from '../schema/body-parser.ts'
import { formProblems, hasForm, textField } from '../schema/body-parser.ts'
import type { FieldProblem } from '../schema/field-problem.ts'

/** The fields that name a caller, by any of their names. */
type CallerFields = Pick<CheckRequest, IdentityName | 'userId' | 'clientIp' | 'tenantId'> &
  Partial<Pick<CheckRequest, 'resource'>>

/** Whose counters are meant, and under which rules: at least one of these. */
export interface UsageQuery extends CallerFields {
  /** Further dimensions, as the JSON object that a check has: `{"model":"large"}`. */
  readonly descriptors?: string
}

/** The body that says whose counters start anew: at least one of these besides the note. */
export interface ResetRequest extends CallerFields, Pick<CheckRequest, 'descriptors'> {
  /** Why, for the audit log: 1 to 1000 characters. */
  readonly note?: string
}

/** A caller, with one name for each identity; what was not given is not there. */
export interface NamedCaller extends Pick<CheckRequest, IdentityName>, Partial<Pick<CheckRequest, 'resource'>> {
  readonly descriptors?: Descriptors
}

const CALLER_FIELDS = ['user', 'apiKey', 'ip', 'tenant', 'service', 'resource', 'descriptors'] as const

const OTHER_NAMES = ['userId', 'clientIp', 'tenantId'] as const satisfies readonly CheckField[]

const USAGE_FORM = formOf()

const RESET_FORM = formOf([['note', textField(1000)]])

/** Turns the parameters of a query into whose usage is asked for, or into everything that is wrong with them. */
export function parseUsageQuery(query: Readonly<Record<string, string>>): Parsed<{ readonly who: NamedCaller }> {
  const { descriptors: text, ...rest } = query
  const descriptors = text === undefined ? undefined : parsedJson(text)
  if (descriptors === NOT_JSON) return notJson()
  const caller = descriptors === undefined ? rest : { ...rest, descriptors }
  if (!hasForm(caller, USAGE_FORM)) return inQuery(formProblems(caller, USAGE_FORM))
  const who = namedCaller(caller as ResetRequest)
  return Object.keys(who).length === 0 ? inQuery(nobody()) : { ok: true, who }
}

/** Turns the parsed JSON of a body into whose counters start anew, or into everything that is wrong with it. */
export function parseResetRequest(
  body: unknown,
): Parsed<{ readonly who: NamedCaller; readonly note: string | undefined }> {
  if (!hasForm(body, RESET_FORM)) return formProblems(body, RESET_FORM)
  const who = namedCaller(body)
  return Object.keys(who).length === 0 ? nobody() : { ok: true, who, note: (body as ResetRequest).note }
}

/** The caller in a body or query whose form is right. */
function namedCaller(fields: ResetRequest): NamedCaller {
  const { userId, clientIp, tenantId } = fields
  const named = { ...fields, user: fields.user ?? userId, ip: fields.ip ?? clientIp, tenant: fields.tenant ?? tenantId }
  const given = CALLER_FIELDS.filter((name) => named[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, named[name]]))
}

function formOf(more: readonly (readonly [string, Field])[] = []): BodyForm {
  const names: readonly string[] = [...CALLER_FIELDS, ...OTHER_NAMES]
  return {
    fields: new Map([...[...CHECK_FIELDS].filter(([name]) => names.includes(name)), ...more]),
    needed: [],
    expected: 'a JSON object that says who is meant',
    problemsBetween: identityProblems,
  }
}

function nobody(): RefusedBody {
  const problem = { path: '', received: 'nobody', expected: `at least one of ${CALLER_FIELDS.join(', ')}` }
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

function notJson(): RefusedBody {
  const expected = 'a JSON object of descriptors, by name, such as {"model":"large"}'
  return { ok: false, problems: [{ path: '?descriptors', received: 'a text that is not JSON', expected }], unlisted: 0 }
}

/** The same problems, about parameters of a query. */
function inQuery({ problems, unlisted }: RefusedBody): RefusedBody {
  const there = (problem: FieldProblem): FieldProblem => ({ ...problem, path: problem.path.replace(/^\/?/, '?') })
  return { ok: false, problems: problems.map(there), unlisted }
}
