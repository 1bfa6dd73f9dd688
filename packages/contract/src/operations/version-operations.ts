import type {
  DiffAnswer,
  DraftRequest,
  ImportRequest,
  RollbackRequest,
  StageRequest,
  Version,
  VersionContent,
} from '../admin/version-bodies.ts'
import {
  DIFF_ANSWER,
  DRAFT_REQUEST,
  IMPORT_REQUEST,
  ROLLBACK_REQUEST,
  STAGE_REQUEST,
  VERSION,
  VERSION_CONTENT,
  VERSION_PAGE,
} from '../admin/version-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { neededQuery, operations, PAGE_PARAMETERS, pathPart } from './operation.ts'

const RULE_SET_BYTES = 8_388_608

const READS: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED', 'SLUICE_HTTP_CONFIG_UNAVAILABLE']

const NUMBER = { type: 'integer', minimum: 1, maximum: 2_147_483_647 } as const

const WHICH = { number: pathPart('Number of the version.', NUMBER) }

/** Versions of the rule set: drafts, careful roll-out, and the way back. */
export const VERSION_OPERATIONS = operations('versions', {
  listVersions: {
    method: 'GET',
    path: '/admin/versions',
    role: 'viewer',
    summary: 'Lists versions',
    description: 'All versions of the rule set, newest first.',
    parameters: PAGE_PARAMETERS,
    answers: { 200: { description: 'The versions.', schema: VERSION_PAGE.ref } },
    problems: READS,
  },
  createVersion: {
    method: 'POST',
    path: '/admin/versions',
    role: 'editor',
    summary: 'Creates a draft',
    description:
      'The rule set is checked as a whole; everything that is wrong with it is listed. A draft has no effect. ' +
      '"basedOn" says which enforced version its author has seen, so that it cannot take the place of what ' +
      'somebody else made meanwhile. Exemptions and deny list other than the enforced ones take the role admin.',
    body: ref<DraftRequest>(DRAFT_REQUEST),
    maxBodyBytes: RULE_SET_BYTES,
    answers: { 201: { description: 'The draft.', schema: ref<Version>(VERSION) } },
    problems: [...READS, 'SLUICE_HTTP_CONFLICT', 'SLUICE_HTTP_INVALID_RULE_SET'],
  },
  getVersion: {
    method: 'GET',
    path: '/admin/versions/{number}',
    role: 'viewer',
    summary: 'Shows a version',
    description: 'A version and the rule set in it.',
    parameters: WHICH,
    answers: { 200: { description: 'The version.', schema: ref<VersionContent>(VERSION_CONTENT), headers: ['ETag'] } },
    problems: READS,
    hasEtag: true,
  },
  diffVersions: {
    method: 'GET',
    path: '/admin/versions/{number}/diff',
    role: 'viewer',
    summary: 'Compares two versions',
    description: 'What changes from one version to another.',
    parameters: { ...WHICH, to: neededQuery('Number of the version to compare with.', NUMBER) },
    answers: { 200: { description: 'What differs.', schema: ref<DiffAnswer>(DIFF_ANSWER) } },
    problems: READS,
  },
  stageVersion: {
    method: 'POST',
    path: '/admin/versions/{number}/stage',
    role: 'editor',
    summary: 'Changes the stage of a version',
    description:
      'Measures a version (shadow), enforces it for a share of the callers (percent) or for all (enforce), or ' +
      'takes it back (retired). At most one version is enforced, and at most one is on its way. A version cannot ' +
      'take the place of another that its author has not seen. To move on a version with exemptions or a deny list ' +
      'other than the enforced ones takes the role admin.',
    parameters: WHICH,
    body: ref<StageRequest>(STAGE_REQUEST),
    answers: { 200: { description: 'The version.', schema: ref<Version>(VERSION), headers: ['ETag'] } },
    problems: [...READS, 'SLUICE_HTTP_CONFLICT'],
    hasEtag: true,
  },
  rollbackVersion: {
    method: 'POST',
    path: '/admin/versions/rollback',
    role: 'editor',
    summary: 'Rolls back to an earlier version',
    description:
      'Enforces the version that was enforced before, or the one named, in one step. If-Match names the version ' +
      'that is enforced as far as you know, as the ETag of the rules does: if two callers roll back from the same ' +
      'version, the second gets 412. If its exemptions or deny list are other than the enforced ones, that takes ' +
      'the role admin.',
    body: ref<RollbackRequest>(ROLLBACK_REQUEST),
    answers: {
      200: { description: 'The version that is enforced.', schema: ref<Version>(VERSION), headers: ['ETag'] },
    },
    problems: [...READS, 'SLUICE_HTTP_NOT_FOUND', 'SLUICE_HTTP_CONFLICT'],
    hasEtag: true,
  },
  importVersion: {
    method: 'POST',
    path: '/admin/versions/import',
    role: 'editor',
    summary: 'Imports envoyproxy/ratelimit config',
    description:
      'Reads files in the form of envoyproxy/ratelimit. The draft is the enforced rule set with their domains in ' +
      'the place of its own; POST /json decides by them once it is enforced. In shadow, or for a share of the ' +
      'callers, domains are neither measured nor enforced. Everything that is wrong in any of the files is listed.',
    body: ref<ImportRequest>(IMPORT_REQUEST),
    maxBodyBytes: RULE_SET_BYTES,
    answers: { 201: { description: 'The draft.', schema: ref<Version>(VERSION) } },
    problems: [...READS, 'SLUICE_HTTP_CONFLICT', 'SLUICE_HTTP_INVALID_RULE_SET'],
  },
})
