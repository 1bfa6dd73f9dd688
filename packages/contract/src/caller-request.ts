import type { CheckField, CheckRequest } from './check-request.ts'
import { CHECK_FIELDS, identityProblems } from './check-request.ts'
import type { FieldProblem } from './field-problem.ts'
import type { BodyForm, Field, Parsed, RefusedBody } from './request-fields.ts'
import { formProblems, hasForm, textField } from './request-fields.ts'

/** Whose counters are meant, and under which rules: at least one of these. */
export interface UsageQuery
  extends Pick<CheckRequest, 'userId' | 'apiKey' | 'clientIp' | 'tenantId' | 'service'>,
    Partial<Pick<CheckRequest, 'resource'>> {}

/** The body that says whose counters start anew: at least one of these besides the note. */
export interface ResetRequest extends UsageQuery, Pick<CheckRequest, 'descriptors'> {
  /** Why, for the audit log: 1 to 1000 characters. */
  readonly note?: string
}

const IDENTITIES = ['userId', 'apiKey', 'clientIp', 'tenantId', 'service'] as const satisfies readonly CheckField[]

const USAGE_FORM = formOf([...IDENTITIES, 'resource'])

const RESET_FORM = formOf([...IDENTITIES, 'descriptors', 'resource'], [['note', textField(1000)]])

/** Turns the parameters of a query into whose usage is asked for, or into everything that is wrong with them. */
export function parseUsageQuery(query: Readonly<Record<string, string>>): Parsed<{ readonly who: UsageQuery }> {
  if (!hasForm(query, USAGE_FORM)) return inQuery(formProblems(query, USAGE_FORM))
  return Object.keys(query).length === 0 ? inQuery(nobody(USAGE_FORM)) : { ok: true, who: query }
}

/** Turns the parsed JSON of a body into whose counters start anew, or into everything that is wrong with it. */
export function parseResetRequest(
  body: unknown,
): Parsed<{ readonly who: Omit<ResetRequest, 'note'>; readonly note: string | undefined }> {
  if (!hasForm(body, RESET_FORM)) return formProblems(body, RESET_FORM)
  const { note, ...who } = body as ResetRequest
  return Object.keys(who).length === 0 ? nobody(RESET_FORM) : { ok: true, who, note }
}

function formOf(names: readonly CheckField[], more: readonly (readonly [string, Field])[] = []): BodyForm {
  return {
    fields: new Map([...[...CHECK_FIELDS].filter(([name]) => (names as readonly string[]).includes(name)), ...more]),
    needed: [],
    expected: 'a JSON object that says who is meant',
    problemsBetween: identityProblems,
  }
}

function nobody({ fields }: BodyForm): RefusedBody {
  const names = [...fields.keys()].filter((name) => name !== 'note')
  const problem = { path: '', received: 'nobody', expected: `at least one of ${names.join(', ')}` }
  return { ok: false, problems: [problem], unlisted: 0 }
}

/** The same problems, about parameters of a query. */
function inQuery({ problems, unlisted }: RefusedBody): RefusedBody {
  const there = (problem: FieldProblem): FieldProblem => ({ ...problem, path: problem.path.replace(/^\/?/, '?') })
  return { ok: false, problems: problems.map(there), unlisted }
}
