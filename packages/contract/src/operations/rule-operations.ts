import type { RateLimitsAnswer, RateLimitsPage, RateLimitsRequest } from '../admin/rule-bodies.ts'
import {
  DENY_LIST,
  EXEMPTIONS,
  RATE_LIMITS_ANSWER,
  RATE_LIMITS_PAGE,
  RATE_LIMITS_REQUEST,
  TIERS,
} from '../admin/rule-bodies.ts'
import { DENY_ENTRY_REQUEST, EXEMPTION_REQUEST, TIER_REQUEST } from '../admin/rule-set-types.ts'
import type { UsageAnswer } from '../admin/usage-bodies.ts'
import { USAGE_ANSWER } from '../admin/usage-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import { entryName, RESOURCE } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import { neededQuery, operations, PAGE_PARAMETERS, pathPart, query } from './operation.ts'

const RULES_BYTES = 1_048_576

const READS: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

const EDITS: readonly ProblemCode[] = [
  ...READS,
  'SLUICE_HTTP_NOT_FOUND',
  'SLUICE_HTTP_CONFLICT',
  'SLUICE_HTTP_INVALID_RULE_SET',
]

const NAME_IN_PATH = 'The name in the body is optional; if present, it must be the one in the path.'

const NEW_VERSION =
  'The change is a version of the rule set of its own: checked as a whole, enforced at once, and undone by a rollback.'

const NAME = { name: pathPart('Its name.', entryName('Its name, unique among its kind.')) }

const PUT = {
  method: 'PUT',
  parameters: NAME,
  maxBodyBytes: RULES_BYTES,
  problems: EDITS,
  hasEtag: true,
} as const

const DELETE = {
  method: 'DELETE',
  parameters: NAME,
  answers: { 204: { description: 'It is gone.', headers: ['ETag'] } },
  problems: EDITS,
  hasEtag: true,
} as const

function upTo(maxLength: number) {
  return { type: 'string', minLength: 1, maxLength } as const
}

const LIST = { method: 'GET', role: 'viewer', parameters: PAGE_PARAMETERS, problems: READS, hasEtag: true } as const

/** The rules that are enforced, and what they have counted. */
export const RULE_OPERATIONS = operations('rules', {
  listRateLimits: {
    ...LIST,
    path: '/admin/ratelimits',
    summary: 'Lists the rules',
    description: 'The enforced rules, by resource.',
    parameters: { ...PAGE_PARAMETERS, resource: query('Only the rules of this resource, as they write it.', RESOURCE) },
    answers: {
      200: {
        description: 'Resources and their rules.',
        schema: ref<RateLimitsPage>(RATE_LIMITS_PAGE),
        headers: ['ETag'],
      },
    },
  },
  putRateLimits: {
    method: 'PUT',
    path: '/admin/ratelimits',
    role: 'editor',
    summary: 'Sets the rules of a resource',
    description: `Puts these rules in the place of all rules of the resource. ${NEW_VERSION}`,
    body: ref<RateLimitsRequest>(RATE_LIMITS_REQUEST),
    maxBodyBytes: RULES_BYTES,
    answers: {
      200: {
        description: 'The rules are enforced.',
        schema: ref<RateLimitsAnswer>(RATE_LIMITS_ANSWER),
        headers: ['ETag'],
      },
    },
    problems: EDITS.filter((code) => code !== 'SLUICE_HTTP_NOT_FOUND'),
    hasEtag: true,
  },
  deleteRateLimits: {
    ...DELETE,
    path: '/admin/ratelimits',
    role: 'editor',
    summary: 'Removes the rules of a resource',
    description: `Removes all rules of the resource. ${NEW_VERSION}`,
    parameters: { resource: neededQuery('The resource, as its rules write it.', RESOURCE) },
  },
  usage: {
    method: 'GET',
    path: '/admin/ratelimits/usage',
    role: 'viewer',
    summary: 'Shows usage',
    description:
      'How the counters of these callers stand: of the rules that the resource matches, or of all without one. At ' +
      'least one parameter is needed. Nothing is charged.',
    parameters: {
      user: query('The user.', upTo(256)),
      apiKey: query('The API key, as checks name it.', upTo(512)),
      ip: query('The address.', upTo(45)),
      tenant: query('The tenant.', upTo(256)),
      service: query('The internal service that calls.', upTo(256)),
      userId: query('Another name of "user".', upTo(256)),
      clientIp: query('Another name of "ip".', upTo(45)),
      tenantId: query('Another name of "tenant".', upTo(256)),
      descriptors: query('Further dimensions, as the JSON object that a check has: {"model":"large"}.', upTo(32_768)),
      resource: query('What is called.', upTo(2048)),
    },
    answers: { 200: { description: 'How the counters stand.', schema: ref<UsageAnswer>(USAGE_ANSWER) } },
    problems: ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_STORE_UNAVAILABLE'],
  },
  listTiers: {
    ...LIST,
    path: '/admin/tiers',
    summary: 'Lists the tiers',
    description: 'The named groups of callers of the enforced rules.',
    answers: { 200: { description: 'The tiers.', schema: TIERS.page.ref, headers: ['ETag'] } },
  },
  putTier: {
    ...PUT,
    path: '/admin/tiers/{name}',
    role: 'editor',
    summary: 'Sets a tier',
    description: `Adds a tier, or replaces the one with this name. ${NAME_IN_PATH} ${NEW_VERSION}`,
    body: TIER_REQUEST,
    answers: { 200: { description: 'The tier.', schema: TIERS.answer.ref, headers: ['ETag'] } },
  },
  deleteTier: {
    ...DELETE,
    path: '/admin/tiers/{name}',
    role: 'editor',
    summary: 'Removes a tier',
    description: `Removes a tier; its members are limited as everybody is. ${NEW_VERSION}`,
  },
  listExemptions: {
    ...LIST,
    path: '/admin/exemptions',
    summary: 'Lists the exemptions',
    description: 'The requests that the rules are not for. Of several that match, the first counts.',
    answers: { 200: { description: 'The exemptions.', schema: EXEMPTIONS.page.ref, headers: ['ETag'] } },
  },
  putExemption: {
    ...PUT,
    path: '/admin/exemptions/{name}',
    role: 'admin',
    summary: 'Sets an exemption',
    description: `Replaces the one with this name, or adds it at the end. ${NAME_IN_PATH} ${NEW_VERSION}`,
    body: EXEMPTION_REQUEST,
    answers: { 200: { description: 'The exemption.', schema: EXEMPTIONS.answer.ref, headers: ['ETag'] } },
  },
  deleteExemption: {
    ...DELETE,
    path: '/admin/exemptions/{name}',
    role: 'admin',
    summary: 'Removes an exemption',
    description: `The requests are limited as all are. ${NEW_VERSION}`,
  },
  listDenyEntries: {
    ...LIST,
    path: '/admin/deny-list',
    summary: 'Lists the deny list',
    description: 'The requests that are always denied.',
    answers: { 200: { description: 'The entries.', schema: DENY_LIST.page.ref, headers: ['ETag'] } },
  },
  putDenyEntry: {
    ...PUT,
    path: '/admin/deny-list/{name}',
    role: 'admin',
    summary: 'Sets an entry of the deny list',
    description: `Replaces the one with this name, or adds it at the end. ${NAME_IN_PATH} ${NEW_VERSION}`,
    body: DENY_ENTRY_REQUEST,
    answers: { 200: { description: 'The entry.', schema: DENY_LIST.answer.ref, headers: ['ETag'] } },
  },
  deleteDenyEntry: {
    ...DELETE,
    path: '/admin/deny-list/{name}',
    role: 'admin',
    summary: 'Removes an entry of the deny list',
    description: `The requests are let through as all are. ${NEW_VERSION}`,
  },
})
