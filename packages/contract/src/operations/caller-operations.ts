import type {
  BlockRequest,
  BulkAnswer,
  BulkMembersRequest,
  BulkOverridesRequest,
  IncidentAnswer,
} from '../admin/entry-bodies.ts'
import {
  BLOCK_REQUEST,
  BLOCKS,
  BULK_ANSWER,
  BULK_MEMBERS_REQUEST,
  BULK_OVERRIDES_REQUEST,
  INCIDENT_ANSWER,
  MEMBERS,
  OVERRIDES,
} from '../admin/entry-bodies.ts'
import { INCIDENT, MEMBERSHIP, OVERRIDE } from '../admin/rule-set-types.ts'
import type { ResetAnswer, ResetRequest } from '../admin/usage-bodies.ts'
import { RESET_ANSWER, RESET_REQUEST } from '../admin/usage-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import { DIMENSION, ENTITY, RESOURCE } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import { neededQuery, operations, PAGE_PARAMETERS, query } from './operation.ts'

const BULK_BYTES = 8_388_608

const READS: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

/** A change may also be rejected because of its meaning. */
const WRITES: readonly ProblemCode[] = [...READS, 'SLUICE_HTTP_INVALID_RULE_SET', 'SLUICE_HTTP_CONFLICT']

const REMOVES: readonly ProblemCode[] = [...READS, 'SLUICE_HTTP_NOT_FOUND', 'SLUICE_HTTP_CONFLICT']

const FILTER = {
  ...PAGE_PARAMETERS,
  dimension: query('Only callers of this dimension.', DIMENSION),
  entity: query('Only this caller; with dimension.', ENTITY),
}

const WHO = {
  dimension: neededQuery('The dimension of the caller.', DIMENSION),
  entity: neededQuery('The caller.', ENTITY),
}

const LIST = { method: 'GET', role: 'viewer', parameters: FILTER, problems: READS } as const

const GONE = { 204: { description: 'It is gone.' } } as const

/** What holds for single callers. It is not part of a rule set, and holds on all nodes within a second. */
export const CALLER_OPERATIONS = operations('callers', {
  listOverrides: {
    ...LIST,
    path: '/admin/overrides',
    summary: 'Lists overrides',
    description: 'Other numbers for single callers, in the order of dimension, entity and resource.',
    answers: { 200: { description: 'The overrides.', schema: OVERRIDES.page.ref } },
  },
  putOverride: {
    method: 'PUT',
    path: '/admin/overrides',
    role: 'editor',
    summary: 'Sets an override',
    description:
      'Adds an override, or puts it in the place of the one for the same dimension, entity and resource. With ' +
      'If-Match "0" only when there is none.',
    body: OVERRIDE,
    answers: {
      200: {
        description: 'The override, and what it took the place of.',
        schema: OVERRIDES.put.ref,
        headers: ['ETag'],
      },
    },
    problems: WRITES,
    hasEtag: true,
  },
  deleteOverride: {
    method: 'DELETE',
    path: '/admin/overrides',
    role: 'editor',
    summary: 'Removes an override',
    description: 'The caller is limited as the rules say.',
    parameters: { ...WHO, resource: neededQuery('The resource of the override, as it writes it.', RESOURCE) },
    answers: GONE,
    problems: REMOVES,
    hasEtag: true,
  },
  bulkOverrides: {
    method: 'POST',
    path: '/admin/overrides/bulk',
    role: 'editor',
    summary: 'Sets many overrides',
    description: 'Puts up to 10000 overrides in one step: all of them, or none when one cannot be used.',
    body: ref<BulkOverridesRequest>(BULK_OVERRIDES_REQUEST),
    maxBodyBytes: BULK_BYTES,
    answers: { 200: { description: 'They hold.', schema: ref<BulkAnswer>(BULK_ANSWER) } },
    problems: WRITES,
  },
  listMembers: {
    ...LIST,
    path: '/admin/members',
    summary: 'Lists members of tiers',
    description: 'Which callers belong to which tier, in the order of dimension and entity.',
    answers: { 200: { description: 'The members.', schema: MEMBERS.page.ref } },
  },
  putMember: {
    method: 'PUT',
    path: '/admin/members',
    role: 'editor',
    summary: 'Sets the tier of a caller',
    description:
      'A caller belongs to one tier of a dimension: this one from now on. With If-Match "0" only when to none yet.',
    body: MEMBERSHIP,
    answers: {
      200: { description: 'The member, and what it took the place of.', schema: MEMBERS.put.ref, headers: ['ETag'] },
    },
    problems: WRITES,
    hasEtag: true,
  },
  deleteMember: {
    method: 'DELETE',
    path: '/admin/members',
    role: 'editor',
    summary: 'Removes a caller from its tier',
    description: 'The caller is limited as everybody is.',
    parameters: WHO,
    answers: GONE,
    problems: REMOVES,
    hasEtag: true,
  },
  bulkMembers: {
    method: 'POST',
    path: '/admin/members/bulk',
    role: 'editor',
    summary: 'Sets the tiers of many callers',
    description: 'Puts up to 10000 members in one step: all of them, or none when one cannot be used.',
    body: ref<BulkMembersRequest>(BULK_MEMBERS_REQUEST),
    maxBodyBytes: BULK_BYTES,
    answers: { 200: { description: 'They hold.', schema: ref<BulkAnswer>(BULK_ANSWER) } },
    problems: WRITES,
  },
  listBlocks: {
    ...LIST,
    path: '/admin/blocks',
    summary: 'Lists blocks',
    description: 'The callers that are blocked for a time, set by somebody or by the penalty of a rule.',
    answers: { 200: { description: 'The blocks.', schema: BLOCKS.page.ref } },
  },
  blockFeed: {
    method: 'GET',
    path: '/admin/blocks.txt',
    role: 'viewer',
    summary: 'Lists blocked addresses for a firewall',
    description:
      'The addresses that are blocked, as text: on each line a network in CIDR form, then # and when the block ' +
      'expires. Lines that begin with # are comments. Send the ETag back as If-None-Match: the answer is 304 while ' +
      'nothing has changed.',
    answers: {
      200: {
        description: 'The networks.',
        mediaType: 'text/plain; charset=utf-8',
        schema: { type: 'string' },
        headers: ['ETag', 'Cache-Control'],
        example:
          '# Addresses that Sluice blocks: a network, and when its block expires.\n192.0.2.7/32 # ' +
          'expires=2025-11-05T11:05:00.000Z\n2001:db8:0:1::/64 # expires=2025-11-05T10:20:00.000Z\n',
      },
      304: { description: 'Nothing has changed since the list of this tag.', headers: ['ETag', 'Cache-Control'] },
    },
    problems: READS,
    hasEtag: true,
  },
  putBlock: {
    method: 'PUT',
    path: '/admin/blocks',
    role: 'editor',
    summary: 'Blocks a caller',
    description: 'Denies all requests of a caller for a time, starting now.',
    body: ref<BlockRequest>(BLOCK_REQUEST),
    answers: {
      200: { description: 'The block, and what it took the place of.', schema: BLOCKS.put.ref, headers: ['ETag'] },
    },
    problems: WRITES,
    hasEtag: true,
  },
  deleteBlock: {
    method: 'DELETE',
    path: '/admin/blocks',
    role: 'editor',
    summary: 'Lifts a block',
    description:
      'Lets a caller in again, whichever rule blocked it, and forgets what led to the block. Helps on the next ' +
      'request.',
    parameters: WHO,
    answers: GONE,
    problems: [...REMOVES, 'SLUICE_HTTP_STORE_UNAVAILABLE'],
    hasEtag: true,
  },
  getIncident: {
    method: 'GET',
    path: '/admin/incident',
    role: 'viewer',
    summary: 'Shows incident mode',
    description:
      'While an incident is declared, limits are cut as the rules say. `affectedRules` counts the rules that say so.',
    answers: {
      200: { description: 'How the switch stands.', schema: ref<IncidentAnswer>(INCIDENT_ANSWER), headers: ['ETag'] },
    },
    problems: READS,
    hasEtag: true,
  },
  putIncident: {
    method: 'PUT',
    path: '/admin/incident',
    role: 'editor',
    summary: 'Starts or ends incident mode',
    description:
      'Multiplies limits by the `incident` of each rule, or of the rule set, until it is ended or its time is ' +
      'over. Where no rule has one, nothing changes and the answer has a `warning`.',
    body: INCIDENT,
    answers: {
      200: { description: 'How the switch stands.', schema: ref<IncidentAnswer>(INCIDENT_ANSWER), headers: ['ETag'] },
    },
    problems: WRITES,
    hasEtag: true,
  },
  reset: {
    method: 'POST',
    path: '/admin/reset',
    role: 'editor',
    summary: 'Resets counters',
    description:
      'Forgets what these callers have used, or gives back as many units as `units` says: under the rules that the ' +
      'resource matches, or under all without one.',
    body: ref<ResetRequest>(RESET_REQUEST),
    answers: {
      200: { description: 'How many rules have counted these callers.', schema: ref<ResetAnswer>(RESET_ANSWER) },
    },
    problems: ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_STORE_UNAVAILABLE', 'SLUICE_HTTP_OUTCOME_UNKNOWN'],
  },
})
