import type { Operation, OperationId } from '@sluice/contract'
import type { Answer, OperationHandler, OperationRequest, Principal } from '../operations/handler.ts'
import { problemAnswer } from '../operations/problems.ts'

/** What a request may be for the holder of a key of a tenant: the same one with the tenant in it, or the answer that refuses it. */
type Narrowing = (request: OperationRequest, tenant: string) => OperationRequest | Answer

/** A body or an entry of one: whatever the client sent. */
type Fields = Readonly<Record<string, unknown>>

const DIMENSION = 'tenant'

/** Who else a question may be about: users, keys, addresses and descriptors are counted for all tenants together. */
const OTHER_CALLERS = ['user', 'userId', 'apiKey', 'ip', 'clientIp', 'descriptors'] as const

/** The names of the field that says which tenant calls. */
const TENANT_FIELDS = ['tenant', 'tenantId'] as const

/** Whose usage is not the tenant's: the counters of a service too are of all tenants together. */
const OTHER_COUNTERS: readonly string[] = [...OTHER_CALLERS, 'service']

/** What a reset of a tenant may hold: under a resource there are counters that all tenants share. */
const RESET_FIELDS: ReadonlySet<string> = new Set([...TENANT_FIELDS, 'note'])

/**
 * What the key of a tenant is good for, as far as its role allows it. Checks are made in the name of the tenant; questions about
 * callers, and changes of what is said about them, may be about the tenant itself only. Everything that is not here concerns
 * all tenants, and is not theirs to see.
 */
const TENANT_OPERATIONS: Readonly<Partial<Record<OperationId, Narrowing>>> = {
  check: asTenant,
  peek: asTenant,
  reserve: asTenant,
  acquire: asTenant,
  checkBatch: allAsTenant,
  checkBatchAlias: allAsTenant,
  // Whoever has the id of a reservation was given it: it is signed, and cannot be guessed.
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
}

/** Who asks, or the refusal: a key of a tenant is good for nothing that concerns all tenants. */
export function admittedTo(operation: Operation, who: Principal | Answer): Principal | Answer {
  if ('status' in who || who.tenant === undefined || narrowingOf(operation.id) !== undefined) return who
  return forbidden(
    `This API key is of a tenant, and this operation concerns all tenants. Use a key without a tenant, with the role "${operation.role}" or a higher one.`,
  )
}

/** The same handler; for the key of a tenant it sees only requests that are about that tenant. */
export function withinTenant({ id }: Operation, handle: OperationHandler): OperationHandler {
  const narrow = narrowingOf(id)
  if (narrow === undefined) return handle
  return (request) => {
    const tenant = request.principal?.tenant
    if (tenant === undefined) return handle(request)
    const narrowed = narrow(request, tenant)
    return 'status' in narrowed ? narrowed : handle(narrowed)
  }
}

/**
 * Of what is told of rules, the part that is for whoever asks: for the key of a tenant, that of rules that count tenants. What
 * others are counted by, and how far all tenants together have got, is not theirs to see.
 */
export function ownRules<R extends { readonly dimension: string }>(
  rules: readonly R[],
  { principal }: OperationRequest,
): readonly R[] {
  if (principal?.tenant === undefined) return rules
  return rules.filter(({ dimension }) => dimension.split('+').includes(DIMENSION))
}

function narrowingOf(id: string): Narrowing | undefined {
  return Object.hasOwn(TENANT_OPERATIONS, id) ? TENANT_OPERATIONS[id as OperationId] : undefined
}

function unchanged(request: OperationRequest): OperationRequest {
  return request
}

/** A call of the tenant, which need not say so. */
function asTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  const body = ownCall(request.body, tenant)
  return body === undefined ? otherTenant() : replaced(request, { body })
}

function allAsTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  const { body } = request
  if (!hasFields(body) || !Array.isArray(body['requests'])) return request
  const requests = body['requests'].map((one) => ownCall(one, tenant))
  return requests.includes(undefined) ? otherTenant() : replaced(request, { body: { ...body, requests } })
}

/** The call with the tenant in it; undefined when it is another's. What is no call at all is left to whoever reads it. */
function ownCall(call: unknown, tenant: string): unknown {
  if (!hasFields(call)) return call ?? null
  const named = TENANT_FIELDS.filter((name) => call[name] !== undefined)
  if (named.length === 0) return { ...call, tenant }
  return named.every((name) => call[name] === tenant) ? call : undefined
}

/** A question about a call of the tenant. */
function aboutTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  const { body } = request
  const other = hasFields(body) ? OTHER_CALLERS.find((name) => Object.hasOwn(body, name)) : undefined
  return other === undefined ? asTenant(request, tenant) : otherCaller(other)
}

function resetOfTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  const { body } = request
  const other = hasFields(body) ? Object.keys(body).find((name) => !RESET_FIELDS.has(name)) : undefined
  return other === undefined ? asTenant(request, tenant) : otherCaller(other)
}

function usageOfTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  const { query } = request
  const other = OTHER_COUNTERS.find((name) => query.has(name))
  if (other !== undefined) return otherCaller(other)
  return TENANT_FIELDS.every((name) => (query.get(name) ?? tenant) === tenant)
    ? queryOfTenant(request, { tenant })
    : otherTenant()
}

/** A list of entries, or the key of one: the tenant's own. */
function entriesOfTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  return queryOfTenant(request, { dimension: DIMENSION, entity: tenant })
}

function entryOfTenant(request: OperationRequest, tenant: string): OperationRequest | Answer {
  return isOwnEntry(request.body, tenant) ? request : otherTenant()
}

function bulkOf(field: 'overrides' | 'members'): Narrowing {
  return (request, tenant) => {
    const entries = (request.body as Fields)[field] as readonly unknown[]
    return entries.every((entry) => isOwnEntry(entry, tenant)) ? request : otherTenant()
  }
}

function isOwnEntry(entry: unknown, tenant: string): boolean {
  return hasFields(entry) && entry['dimension'] === DIMENSION && entry['entity'] === tenant
}

/** The request with these parameters, which it may leave out and must not set otherwise. */
function queryOfTenant(request: OperationRequest, needed: Readonly<Record<string, string>>): OperationRequest | Answer {
  const query = new URLSearchParams(request.query)
  for (const [name, value] of Object.entries(needed)) {
    if ((query.get(name) ?? value) !== value) return otherTenant()
    query.set(name, value)
  }
  return replaced(request, { query })
}

function replaced(
  request: OperationRequest,
  parts: Partial<Pick<OperationRequest, 'body' | 'query'>>,
): OperationRequest {
  const { params, headers, principal, remoteAddress } = request
  return {
    params,
    headers,
    principal,
    remoteAddress,
    query: parts.query ?? request.query,
    body: 'body' in parts ? parts.body : request.body,
    // Made when it is asked for, which few do.
    get signal() {
      return request.signal
    },
  }
}

function hasFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The same whether there is such a tenant or entry, or not. */
function otherTenant(): Answer {
  return forbidden('This API key is of one tenant, and the request is about another or about callers of no tenant.')
}

function otherCaller(field: string): Answer {
  return forbidden(
    `This API key is of a tenant, and "${field}" names what is counted for all tenants together. Leave it out, or use a key without a tenant.`,
  )
}

function forbidden(detail: string): Answer {
  return problemAnswer('SLUICE_HTTP_FORBIDDEN', { detail, headers: { 'Cache-Control': 'no-store' } })
}
