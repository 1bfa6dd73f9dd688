import type { NamedSchema } from '../schema/json-schema.ts'
import { answerSchema, choices, requestSchema } from '../schema/json-schema.ts'
import type { Page } from '../schema/value-schemas.ts'
import { count, flag, instant, listOf, NOTE, pageSchema, text, whole, words } from '../schema/value-schemas.ts'
import type { RuleSet } from './rule-set-types.ts'
import { RULE_SET } from './rule-set-types.ts'

const LARGEST_VERSION = 2_147_483_647

/**
 * Where a version stands. `draft`: it has no effect. `shadow`: evaluated and measured for every request, never
 * enforced. `percent`: enforced for a share of the callers, in shadow for the others. `enforce`: enforced for all.
 * `retired`: another one took its place.
 */
export type VersionStage = 'draft' | 'shadow' | 'percent' | 'enforce' | 'retired'

/** A rule set with a number. The rule set never changes, its stage does. */
export interface Version {
  readonly number: number
  readonly stage: VersionStage
  /** Share of callers in stage `percent`, 0 to 100; else 0. */
  readonly percent: number
  /** The version that was enforced when the author began. */
  readonly basedOn?: number
  /** Milliseconds since 1970. */
  readonly createdAt: number
  readonly createdBy: string
  readonly note?: string
  /** Another with every change of stage; its ETag. */
  readonly revision: number
}

/** A version and what is in it. */
export interface VersionContent extends Version {
  readonly ruleSet: RuleSet
}

/** The body that keeps a rule set as a draft. */
export interface DraftRequest {
  readonly ruleSet: RuleSet
  /**
   * The enforced version that the author has seen, 0 when none was: the draft cannot be enforced in the place of
   * another.
   */
  readonly basedOn: number
  readonly note?: string
}

/** The body that moves a version on. */
export interface StageRequest {
  readonly stage: 'shadow' | 'percent' | 'enforce' | 'retired'
  /** Share of callers, 0 to 100: with stage `percent`, and only then. */
  readonly percent?: number
  readonly note?: string
}

/** The body that goes back to an earlier version. */
export interface RollbackRequest {
  /** The version to enforce. Default: the one enforced before. */
  readonly to?: number
  readonly note?: string
}

/** A file in the form of envoyproxy/ratelimit. */
export interface EnvoyFile {
  /** As problems are to call it. */
  readonly name: string
  readonly text: string
}

/** The body that makes a draft out of files in the form of envoyproxy/ratelimit. */
export interface ImportRequest {
  readonly files: readonly EnvoyFile[]
  /** Whether several files may have parts of one domain. Default: false. */
  readonly mergeDomains?: boolean
  readonly note?: string
}

/** One thing that differs between two rule sets. */
export interface RuleSetChange {
  readonly change: 'added' | 'removed' | 'changed'
  /** The part of the rule set, such as `rules`. */
  readonly part: string
  /** Which of them; empty for a part that is one value, and for the order of a part. */
  readonly name: string
  /** Absent where nothing was there before. */
  readonly before?: unknown
  /** Absent where nothing is there now. */
  readonly after?: unknown
}

/** What changes from one version to another. */
export interface DiffAnswer {
  readonly from: number
  readonly to: number
  readonly changes: readonly RuleSetChange[]
}

const EXAMPLE: Version = {
  number: 13,
  stage: 'shadow',
  percent: 0,
  basedOn: 12,
  createdAt: 1_762_337_100_000,
  createdBy: 'deploy',
  note: 'lower limit for exports',
  revision: 41,
}

const RULE_SET_EXAMPLE: RuleSet = { rules: [{ resource: '/export', dimension: 'user', limit: 10, window: '1h' }] }

const VERSION_PARTS = {
  required: {
    number: count('1, 2, 3, ...'),
    stage: {
      description:
        'draft: without effect. shadow: measured, never enforced. percent: enforced for a share of the callers. ' +
        'enforce: enforced for all. retired: another one took its place.',
      enum: choices('draft', 'shadow', 'percent', 'enforce', 'retired'),
    },
    percent: { description: 'Share of callers in stage percent; else 0.', type: 'number', minimum: 0, maximum: 100 },
    createdAt: instant('When it was made.'),
    createdBy: words('Name of the API key that made it.'),
    revision: count('Another with every change of stage; its ETag.'),
  },
  optional: {
    basedOn: count('The version that was enforced when the author began.'),
    note: words('Why, in the words of the author.'),
  },
} as const

/** The schema of {@link Version}. */
export const VERSION: NamedSchema<Version> = answerSchema('Version', {
  description: 'A rule set with a number. The rule set never changes, its stage does.',
  examples: [EXAMPLE],
  ...VERSION_PARTS,
})

/** The schema of a page of {@link Version}. */
export const VERSION_PAGE: NamedSchema<Page<Version>> = pageSchema('VersionPage', VERSION.ref, EXAMPLE)

/** The schema of {@link VersionContent}. */
export const VERSION_CONTENT: NamedSchema<VersionContent> = answerSchema('VersionContent', {
  description: 'A version and what is in it.',
  examples: [{ ...EXAMPLE, ruleSet: RULE_SET_EXAMPLE }],
  required: { ...VERSION_PARTS.required, ruleSet: RULE_SET },
  optional: VERSION_PARTS.optional,
})

/** The schema of {@link DraftRequest}. */
export const DRAFT_REQUEST: NamedSchema<DraftRequest> = requestSchema('DraftRequest', {
  description: 'A rule set to keep as a draft.',
  examples: [{ ruleSet: RULE_SET_EXAMPLE, basedOn: 12, note: 'lower limit for exports' }],
  required: {
    ruleSet: RULE_SET,
    basedOn: {
      title:
        'the number of the version that its author has seen enforced, which GET /admin/ratelimits tells as ' +
        '"version"; 0 when none was',
      ...whole(
        'The enforced version that the author has seen, 0 when none was. The draft cannot be enforced in the place ' +
          'of another, which somebody may have made meanwhile.',
        0,
        LARGEST_VERSION,
      ),
    },
  },
  optional: { note: NOTE },
})

/** The schema of {@link StageRequest}. */
export const STAGE_REQUEST: NamedSchema<StageRequest> = requestSchema('StageRequest', {
  description: 'What becomes of a version.',
  examples: [{ stage: 'percent', percent: 10 }, { stage: 'enforce' }],
  required: {
    stage: {
      description:
        'shadow: measured. percent: enforced for a share of the callers. enforce: for all. retired: for none.',
      enum: choices('shadow', 'percent', 'enforce', 'retired'),
    },
  },
  optional: {
    percent: {
      description: 'Share of callers: with stage percent, and only then.',
      type: 'number',
      minimum: 0,
      maximum: 100,
    },
    note: NOTE,
  },
})

/** The schema of {@link RollbackRequest}. */
export const ROLLBACK_REQUEST: NamedSchema<RollbackRequest> = requestSchema('RollbackRequest', {
  description: 'Where to go back to.',
  examples: [{ to: 11, note: 'exports fail' }],
  required: {},
  optional: {
    to: whole('The version to enforce. Default: the one enforced before.', 1, LARGEST_VERSION),
    note: NOTE,
  },
})

const ENVOY_FILE_EXAMPLE: EnvoyFile = {
  name: 'shop.yaml',
  text: 'domain: shop\ndescriptors:\n  - key: ip\n    rate_limit: { unit: minute, requests_per_unit: 60 }\n',
}

/** The schema of {@link EnvoyFile}. */
const ENVOY_FILE: NamedSchema<EnvoyFile> = requestSchema('EnvoyFile', {
  description: 'A file in the form of envoyproxy/ratelimit.',
  examples: [ENVOY_FILE_EXAMPLE],
  required: {
    name: text('As problems are to call it.', 200),
    text: { description: 'Its content: YAML.', type: 'string', minLength: 1 },
  },
})

/** The schema of {@link ImportRequest}. */
export const IMPORT_REQUEST: NamedSchema<ImportRequest> = requestSchema('ImportRequest', {
  description: 'Files to make a draft of.',
  examples: [{ files: [ENVOY_FILE_EXAMPLE] }],
  required: { files: { ...listOf<EnvoyFile>('The files.', ENVOY_FILE.ref), minItems: 1, maxItems: 100 } },
  optional: {
    mergeDomains: flag('Whether several files may have parts of one domain. Default: false.'),
    note: NOTE,
  },
})

/** The schema of {@link RuleSetChange}. */
const RULE_SET_CHANGE: NamedSchema<RuleSetChange> = answerSchema('RuleSetChange', {
  description: 'One thing that differs between two rule sets.',
  examples: [{ change: 'changed', part: 'incident', name: '', before: 1, after: 0.5 }],
  required: {
    change: { description: 'What became of it.', enum: choices('added', 'removed', 'changed') },
    part: words('The part of the rule set, such as rules, tiers or denyList.'),
    name: words('Which of them; empty for a part that is one value, and for the order of a part.'),
  },
  optional: {
    before: { description: 'What was there; absent where nothing was.' },
    after: { description: 'What is there now; absent where nothing is.' },
  },
})

/** The schema of {@link DiffAnswer}. */
export const DIFF_ANSWER: NamedSchema<DiffAnswer> = answerSchema('DiffAnswer', {
  description: 'What changes from one version to another.',
  examples: [{ from: 12, to: 13, changes: [{ change: 'changed', part: 'incident', name: '', before: 1, after: 0.5 }] }],
  required: {
    from: count('The version before.'),
    to: count('The version after.'),
    changes: listOf<RuleSetChange>('Everything that differs; empty when they say the same.', RULE_SET_CHANGE.ref),
  },
})
