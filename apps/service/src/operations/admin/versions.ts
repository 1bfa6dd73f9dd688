import { isDeepStrictEqual } from 'node:util'
import type { Author, ConfigStore, StageChange, Version, VersionApproval } from '@sluice/config-store'
import { importEnvoyYaml } from '@sluice/config-store'
import type { DiffAnswer, ImportRequest, StageRequest } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import type { DescriptorNode, RuleSet } from '@sluice/core/policy'
import type { Answer, OperationHandlers, OperationRequest, RequestContext } from '../handler.ts'
import { adminAnswer, pageAnswer } from '../handler.ts'
import type { ProblemError } from '../problems.ts'
import { changedMeanwhile, invalidRequest, invalidRuleSet, notFound, placedError, problemError } from '../problems.ts'
import type { AdminContext, ConfigAccess } from './config-access.ts'
import { seenBy } from './config-access.ts'
import { enforcedRules } from './rules.ts'

type VersionOperation =
  | 'listVersions'
  | 'createVersion'
  | 'getVersion'
  | 'diffVersions'
  | 'stageVersion'
  | 'rollbackVersion'
  | 'importVersion'

/** The versions of the rule set: drafts, stages and rollback. */
export function versionHandlers(parts: AdminContext): OperationHandlers<VersionOperation> {
  const { access } = parts
  return {
    listVersions: async ({ parameters }) => pageAnswer(await access.reads.versions.list(parameters)),

    createVersion: (request) => keepDraft(parts, request),

    getVersion: async ({ parameters: { number } }) => {
      const version = await access.reads.versions.get(number)
      if (version === undefined) throw notFound(`version ${number}`)
      return adminAnswer(version, { revision: version.revision })
    },

    diffVersions: async ({ parameters: { number: from, to } }) => {
      return adminAnswer({ from, to, changes: await access.reads.versions.diff(from, to) } satisfies DiffAnswer)
    },

    stageVersion: (request) => stage(parts, request),

    rollbackVersion: (request) => rollBack(parts, request),

    importVersion: (request) => importFiles(parts, request),
  }
}

async function keepDraft({ access }: AdminContext, request: OperationRequest<'createVersion'>): Promise<Answer> {
  const { basedOn } = request.body
  // The schema of the engine has checked it, which the type of the contract does not express.
  const ruleSet = request.body.ruleSet as RuleSet
  access.rejectUnfit(ruleSet, (path) => `/ruleSet${path}`)
  const approve = approvalOf(request)
  const create = async ({ versions }: ConfigStore, author: Author): Promise<Version> => {
    approve?.(ruleSet, (await enforcedRules(access)).ruleSet)
    try {
      return await versions.create(ruleSet, author, basedOn)
    } catch (error) {
      if (!isSluiceError(error, 'SLUICE_NOT_FOUND')) throw error
      throw invalidRequest({ path: '/basedOn', received: String(basedOn), expected: 'the number of a version, or 0' })
    }
  }
  try {
    return draftAnswer(await access.change(request, create))
  } catch (error) {
    throw placedError(error, (path) => `/ruleSet${path}`)
  }
}

async function stage({ access }: AdminContext, request: OperationRequest<'stageVersion'>): Promise<Answer> {
  const { number } = request.parameters
  const approve = approvalOf(request)
  const change = { ...stageOf(request.body), ...(approve && { approve }) }
  const version = await access.change(request, async ({ versions }, author) => {
    await rejectUnfitVersion(access, number)
    const revision = async (): Promise<number | undefined> => (await versions.get(number))?.revision
    const seen = await seenBy(request, revision)
    try {
      return await versions.stage(number, { ...change, ...seen }, author)
    } catch (error) {
      // There are two conflicts: its stage changed since it was read, or the transition is not allowed.
      if (seen.ifRevision === undefined || !isSluiceError(error, 'SLUICE_CONFLICT')) throw error
      const now = await revision()
      throw now === seen.ifRevision ? error : changedMeanwhile(`now it is revision ${now}`)
    }
  })
  return versionAnswer(version)
}

/**
 * Rolls back. `If-Match` has the number of the enforced version that the editor has seen, and the `ETag` that of the
 * new one.
 */
async function rollBack({ access }: AdminContext, request: OperationRequest<'rollbackVersion'>): Promise<Answer> {
  const { to } = request.body
  const approve = approvalOf(request)
  const version = await access.change(request, async ({ versions }, author) => {
    if (to !== undefined) await rejectUnfitVersion(access, to)
    const enforced = async (): Promise<number | undefined> => (await versions.current()).enforced?.number
    const { ifRevision: ifVersion } = await seenBy(request, enforced)
    const options = { ...(to !== undefined && { to }), ...(ifVersion !== undefined && { ifVersion }) }
    try {
      return await versions.rollback(author, { ...options, ...(approve && { approve }) })
    } catch (error) {
      // There are two conflicts: another version is enforced by now, or there is no previous version.
      if (ifVersion === undefined || !isSluiceError(error, 'SLUICE_CONFLICT')) throw error
      const now = (await enforced()) ?? 0
      throw now === ifVersion ? error : changedMeanwhile(now === 0 ? 'none is enforced' : `version ${now} is enforced`)
    }
  })
  return adminAnswer(version, { revision: version.number })
}

/** Creates a draft of the enforced rules, with their domains replaced by those of these files. */
async function importFiles({ access }: AdminContext, request: OperationRequest<'importVersion'>): Promise<Answer> {
  const { files, mergeDomains = false } = request.body
  const { domains } = importEnvoyYaml(files, { mergeDomains })
  if (!domains.some(({ descriptors }) => hasLimit(descriptors))) throw noLimits(files)
  const version = await access.change(request, async ({ versions }, author) => {
    const { number, ruleSet } = await enforcedRules(access)
    return await versions.create({ ...ruleSet, domains }, author, number)
  })
  return draftAnswer(version)
}

function hasLimit(nodes: readonly DescriptorNode[]): boolean {
  return nodes.some(({ limit, descriptors = [] }) => limit !== undefined || hasLimit(descriptors))
}

/** An empty import is rejected: it would remove the limits of all domains. */
function noLimits(files: ImportRequest['files']): ProblemError {
  const expected = 'at least one descriptor with rate_limit; to remove all domains, put a rule set without "domains"'
  return invalidRuleSet(files.map(({ name }) => ({ path: `${name}#/descriptors`, received: 'no limits', expected })))
}

/** It may have been created by a node with more memory, or with one thread. */
async function rejectUnfitVersion(access: ConfigAccess, number: number): Promise<void> {
  const version = await access.reads.versions.get(number)
  if (version !== undefined) access.rejectUnfit(version.ruleSet)
}

function stageOf({ stage: to, percent }: StageRequest): StageChange {
  if (to === 'percent') {
    if (percent !== undefined) return { stage: to, percent }
    throw invalidRequest({ path: '/percent', received: 'missing', expected: 'a share of the callers, 0 to 100' })
  }
  if (percent === undefined) return { stage: to }
  throw invalidRequest({ path: '/percent', received: `beside "${to}"`, expected: 'nothing: it belongs to "percent"' })
}

function versionAnswer(version: Version): Answer {
  return adminAnswer(version, { revision: version.revision })
}

function draftAnswer(version: Version): Answer {
  const headers = { Location: `/admin/versions/${version.number}` }
  return adminAnswer(version, { status: 201, revision: version.revision, headers })
}

/** The parts of a rule set that only an admin may change, and their names in messages. */
const RESERVED: readonly (readonly [part: 'exemptions' | 'denyList', name: string])[] = [
  ['exemptions', 'exemptions'],
  ['denyList', 'deny list'],
]

/**
 * Rejects a rule set that changes parts which the caller may not change. Undefined for an admin, who may change
 * everything.
 */
function approvalOf({ principal }: RequestContext): VersionApproval | undefined {
  if (principal?.role === 'admin') return undefined
  return (after, before) => {
    const changed = RESERVED.filter(([part]) => !isDeepStrictEqual(after[part] ?? [], before[part] ?? []))
    if (changed.length === 0) return
    const parts = changed.map(([, name]) => name).join(' and ')
    throw problemError(
      'SLUICE_HTTP_FORBIDDEN',
      `The rule set has other ${parts} than the enforced one. To change these takes an API key with the role ` +
        '"admin": use one, or leave them as they are.',
    )
  }
}
