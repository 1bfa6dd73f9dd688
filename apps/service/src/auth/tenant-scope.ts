import type { Operation, OperationId } from '@sluice/contract'
import type { Answer, RequestContext } from '../operations/handler.ts'
import { problemAnswer } from '../operations/problems.ts'

/** A request: its decoded parameters, and its body as undecoded JSON. */
export interface TenantInput {
  readonly parameters: Fields
  readonly body: unknown
}

/**
 * A request with the key of a tenant, narrowed to that tenant, or the answer that rejects it.
 */
export type Narrowing = (input: TenantInput, tenant: string) => TenantInput | Answer

/** Parameters, a body or an entry of one: whatever the client sent. */
type Fields = Readonly<Record<string, unknown>>

const DIMENSION = 'tenant'

/** Other identities in a query: users, keys, addresses and descriptors are counted for all tenants together. */
const OTHER_CALLERS = ['user', 'userId', 'apiKey', 'ip', 'clientIp', 'descriptors'] as const

/** Names of the field with the tenant. */
const TENANT_FIELDS = ['tenant', 'tenantId'] as const

/** Usage that does not belong to the tenant: counters of a service are shared by all tenants too. */
const OTHER_COUNTERS: readonly string[] = [...OTHER_CALLERS, 'service']

/** Valid fields of a reset by a tenant: counters of a resource are shared by all tenants. */
const RESET_FIELDS: ReadonlySet<string> = new Set([...TENANT_FIELDS, 'units', 'note'])

/**
 * The operations open to the key of a tenant, as far as its role allows. Checks count for the tenant. Queries about
 * callers, and changes to them, are limited to the tenant itself. Every operation that is not listed here concerns all
 * tenants and is rejected.
 */
const TENANT_OPERATIONS: Readonly<Partial<Record<OperationId, Narrowing>>> = {
  check: asTenant,
  peek: asTenant,
  reserve: asTenant,
  acquire: asTenant,
  checkBatch: allAsTenant,
  checkBatchAlias: allAsTenant,
  // The id of a reservation is signed and cannot be guessed, so its holder received it from the service.
  settle: unchanged,
  release: unchanged,
  heartbeat: unchanged,
  usage: usageOfTenant,
  explain: aboutTenant,
  reset: resetOfTenant,
  listOverrides: entriesOfTenant,
  putOverride: entryOfTenant,
  deleteOverride: entriesOfTenant,
  bulkOverrides: bulkOf('overrides'),
  listMembers: entriesOfTenant,
  putMember: entryOfTenant,
  deleteMember: entriesOfTenant,
  bulkMembers: bulkOf('members'),
  listBlocks: entriesOfTenant,
  putBlock: entryOfTenant,
  deleteBlock: entriesOfTenant,
  // Its own sessions: those of other keys need a key without a tenant.
  listSessions: unchanged,
  endSession: unchanged,
}

/** The answer to a tenant key if an operation concerns all tenants. */
export function notForTenants(role: Operation['role']): Answer {
  return forbidden(
    'This API key is of a tenant, and this operation concerns all tenants. Use a key without a tenant, with the ' +
      `role "${role}" or a higher one.`,
  )
}

/**
 * How requests with a tenant key are narrowed to that tenant; undefined for operations that such keys cannot call. Runs
 * before decoding, because a body need not name the tenant of the key. Bodies of another form pass unchanged: decoding
 * rejects them.
 */
export function narrowingOf(id: string): Narrowing | undefined {
  return Object.hasOwn(TENANT_OPERATIONS, id) ? TENANT_OPERATIONS[id as OperationId] : undefined
}

/**
 * The reports of rules that a key may see: for a tenant key, those of rules that count tenants. A tenant does not see
 * how others are counted, or the totals of all tenants.
 */
export function ownRules<R extends { readonly dimension: string }>(
  rules: readonly R[],
  { principal }: RequestContext,
): readonly R[] {
  if (principal?.tenant === undefined) return rules
  return rules.filter(({ dimension }) => dimension.split('+').includes(DIMENSION))
}

function unchanged(input: TenantInput): TenantInput {
  return input
}

/** A call of the tenant, which need not name it. */
function asTenant({ parameters, body }: TenantInput, tenant: string): TenantInput | Answer {
  const own = ownCall(body, tenant)
  return own === undefined ? otherTenant() : { parameters, body: own }
}

function allAsTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  const { parameters, body } = input
  const calls = listIn(body, 'requests')
  if (calls === undefined) return input
  const requests = calls.map((one) => ownCall(one, tenant))
  return requests.includes(undefined) ? otherTenant() : { parameters, body: { ...(body as Fields), requests } }
}

/**
 * The call with the tenant filled in; undefined if it names another tenant. Anything else passes to decoding unchanged.
 */
function ownCall(call: unknown, tenant: string): unknown {
  if (!hasFields(call)) return call ?? null
  const named = TENANT_FIELDS.filter((name) => call[name] !== undefined)
  if (named.length === 0) return { ...call, tenant }
  return named.every((name) => call[name] === tenant) ? call : undefined
}

/** A query about a call of the tenant. */
function aboutTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  const { body } = input
  const other = hasFields(body) ? OTHER_CALLERS.find((name) => Object.hasOwn(body, name)) : undefined
  return other === undefined ? asTenant(input, tenant) : otherCaller(other)
}

function resetOfTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  const { body } = input
  const other = hasFields(body) ? Object.keys(body).find((name) => !RESET_FIELDS.has(name)) : undefined
  return other === undefined ? asTenant(input, tenant) : otherCaller(other)
}

function usageOfTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  const { parameters } = input
  const other = OTHER_COUNTERS.find((name) => parameters[name] !== undefined)
  if (other !== undefined) return otherCaller(other)
  const isOwn = TENANT_FIELDS.every((name) => (parameters[name] ?? tenant) === tenant)
  return isOwn ? withParameters(input, { tenant }) : otherTenant()
}

/** A list of entries, or the key of one, of the tenant. */
function entriesOfTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  return withParameters(input, { dimension: DIMENSION, entity: tenant })
}

function entryOfTenant(input: TenantInput, tenant: string): TenantInput | Answer {
  return isOwnEntry(input.body, tenant) ? input : otherTenant()
}

function bulkOf(field: 'overrides' | 'members'): Narrowing {
  return (input, tenant) => {
    const entries = listIn(input.body, field) ?? []
    return entries.every((entry) => isOwnEntry(entry, tenant)) ? input : otherTenant()
  }
}

/** Whether an entry belongs to the tenant, or is not an entry. */
function isOwnEntry(entry: unknown, tenant: string): boolean {
  if (!hasFields(entry)) return true
  return (
    [DIMENSION, undefined].includes(entry['dimension'] as string) &&
    [tenant, undefined].includes(entry['entity'] as string)
  )
}

/** The request with these parameters, which it may omit but not contradict. */
function withParameters(input: TenantInput, needed: Readonly<Record<string, string>>): TenantInput | Answer {
  const { parameters, body } = input
  const isOwn = Object.entries(needed).every(([name, value]) => (parameters[name] ?? value) === value)
  return isOwn ? { parameters: { ...parameters, ...needed }, body } : otherTenant()
}

function listIn(body: unknown, field: string): readonly unknown[] | undefined {
  const list = hasFields(body) ? body[field] : undefined
  return Array.isArray(list) ? list : undefined
}

function hasFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The same answer whether the tenant or entry exists or not. */
function otherTenant(): Answer {
  return forbidden('This API key is of one tenant, and the request is about another or about callers of no tenant.')
}

function otherCaller(field: string): Answer {
  return forbidden(
    `This API key is of a tenant, and "${field}" names what is counted for all tenants together. Leave it out, or ` +
      'use a key without a tenant.',
  )
}

function forbidden(detail: string): Answer {
  return problemAnswer('SLUICE_HTTP_FORBIDDEN', { detail, headers: { 'Cache-Control': 'no-store' } })
}
