import type { OperationId } from '@sluice/contract'

/** A call that succeeds, after those before it. */
export interface ExampleCall {
  readonly id: OperationId
  readonly target: string
  readonly body?: unknown
  /** The actions that the audit log has of it; none where nothing is changed. */
  readonly audited?: readonly string[]
}

const RULE = { dimension: 'user', limit: 100, window: '1m' }
const RULE_SET = { rules: [{ resource: '/orders', ...RULE }] }
const OVERRIDE = { dimension: 'user', entity: 'u1', resource: '*', terms: { multiplier: 2 } }
const MEMBER = { dimension: 'user', entity: 'u1', tier: 'premium' }
const EDIT = ['version.edit']
const ENVOY_FILE = 'domain: shop\ndescriptors:\n  - key: ip\n    rate_limit: { unit: minute, requests_per_unit: 60 }\n'

/** `{issued}` in a target stands for the id of the key that was made last. */
export const ISSUED = '{issued}'

/**
 * Every operation of the admin API's own, in an order in which all succeed on a database with nothing but keys in it.
 */
export const EXAMPLE_CALLS: readonly ExampleCall[] = [
  // First, so that an editor, who cannot change these, can go back over everything that comes after.
  {
    id: 'putExemption',
    target: 'PUT /admin/exemptions/health',
    body: { name: 'health', match: { resource: '/health' } },
    audited: EDIT,
  },
  { id: 'listExemptions', target: 'GET /admin/exemptions' },
  { id: 'deleteExemption', target: 'DELETE /admin/exemptions/health', audited: EDIT },
  {
    id: 'putDenyEntry',
    target: 'PUT /admin/deny-list/bad',
    body: { name: 'bad', match: { cidrs: ['192.0.2.0/24'] } },
    audited: EDIT,
  },
  { id: 'listDenyEntries', target: 'GET /admin/deny-list' },
  { id: 'deleteDenyEntry', target: 'DELETE /admin/deny-list/bad', audited: EDIT },
  { id: 'putRateLimits', target: 'PUT /admin/ratelimits', body: { resource: '/a', rules: [RULE] }, audited: EDIT },
  { id: 'listRateLimits', target: 'GET /admin/ratelimits' },
  { id: 'usage', target: 'GET /admin/ratelimits/usage?userId=u1' },
  { id: 'deleteRateLimits', target: 'DELETE /admin/ratelimits?resource=%2Fa', audited: EDIT },
  { id: 'putTier', target: 'PUT /admin/tiers/premium', body: { name: 'premium', multiplier: 2 }, audited: EDIT },
  { id: 'listTiers', target: 'GET /admin/tiers' },
  { id: 'deleteTier', target: 'DELETE /admin/tiers/premium', audited: EDIT },
  { id: 'putOverride', target: 'PUT /admin/overrides', body: OVERRIDE, audited: ['override.put'] },
  { id: 'listOverrides', target: 'GET /admin/overrides' },
  {
    id: 'deleteOverride',
    target: 'DELETE /admin/overrides?dimension=user&entity=u1&resource=*',
    audited: ['override.remove'],
  },
  {
    id: 'bulkOverrides',
    target: 'POST /admin/overrides/bulk',
    body: { overrides: [OVERRIDE] },
    audited: ['override.put-all'],
  },
  { id: 'putMember', target: 'PUT /admin/members', body: MEMBER, audited: ['member.put'] },
  { id: 'listMembers', target: 'GET /admin/members' },
  { id: 'deleteMember', target: 'DELETE /admin/members?dimension=user&entity=u1', audited: ['member.remove'] },
  { id: 'bulkMembers', target: 'POST /admin/members/bulk', body: { members: [MEMBER] }, audited: ['member.put-all'] },
  {
    id: 'putBlock',
    target: 'PUT /admin/blocks',
    body: { dimension: 'user', entity: 'u9', duration: '1h' },
    audited: ['block.put'],
  },
  { id: 'listBlocks', target: 'GET /admin/blocks' },
  { id: 'blockFeed', target: 'GET /admin/blocks.txt' },
  { id: 'deleteBlock', target: 'DELETE /admin/blocks?dimension=user&entity=u9', audited: ['block.remove'] },
  { id: 'putIncident', target: 'PUT /admin/incident', body: { active: true }, audited: ['incident.set'] },
  { id: 'getIncident', target: 'GET /admin/incident' },
  {
    id: 'createVersion',
    target: 'POST /admin/versions',
    body: { ruleSet: RULE_SET, basedOn: 0 },
    audited: ['version.create'],
  },
  { id: 'listVersions', target: 'GET /admin/versions' },
  { id: 'getVersion', target: 'GET /admin/versions/1' },
  { id: 'diffVersions', target: 'GET /admin/versions/1/diff?to=2' },
  {
    id: 'stageVersion',
    target: 'POST /admin/versions/9/stage',
    body: { stage: 'shadow' },
    audited: ['version.stage'],
  },
  { id: 'rollbackVersion', target: 'POST /admin/versions/rollback', body: {}, audited: ['version.rollback'] },
  {
    id: 'importVersion',
    target: 'POST /admin/versions/import',
    body: { files: [{ name: 'shop.yaml', text: ENVOY_FILE }] },
    audited: ['version.create'],
  },
  {
    id: 'createApiKey',
    target: 'POST /admin/api-keys',
    body: { name: 'deploy', role: 'editor' },
    audited: ['api-key.create'],
  },
  { id: 'listApiKeys', target: 'GET /admin/api-keys' },
  {
    id: 'rotateApiKey',
    target: `POST /admin/api-keys/${ISSUED}/rotate`,
    body: { overlapMs: 1000 },
    audited: ['api-key.rotate'],
  },
  { id: 'revokeApiKey', target: `DELETE /admin/api-keys/${ISSUED}`, audited: ['api-key.revoke'] },
  { id: 'listAudit', target: 'GET /admin/audit' },
  { id: 'explain', target: 'POST /admin/explain', body: { resource: '/orders', userId: 'u1' } },
  { id: 'reset', target: 'POST /admin/reset', body: { userId: 'u1' }, audited: ['counters.reset'] },
]
