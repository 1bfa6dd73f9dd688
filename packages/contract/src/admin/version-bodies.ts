import type { Infer } from '../schema/json-schema.ts'
import { answerSchema, requestSchema } from '../schema/json-schema.ts'
import { count, flag, instant, listOf, NOTE, pageSchema, text, whole, words } from '../schema/value-schemas.ts'
import type { RuleSet } from './rule-set-types.ts'
import { RULE_SET } from './rule-set-types.ts'

const LARGEST_VERSION = 2_147_483_647

const EXAMPLE = {
  number: 13,
  stage: 'shadow',
  percent: 0,
  basedOn: 12,
  createdAt: 1_762_337_100_000,
  createdBy: 'deploy',
  note: 'lower limit for exports',
  revision: 41,
} as const

const RULE_SET_EXAMPLE: RuleSet = { rules: [{ resource: '/export', dimension: 'user', limit: 10, window: '1h' }] }

const VERSION_PARTS = {
  required: {
    number: count('1, 2, 3, ...'),
    stage: {
      description:
        'draft: without effect. shadow: measured, never enforced. percent: enforced for a share of the callers. ' +
        'enforce: enforced for all. retired: another one took its place.',
      enum: ['draft', 'shadow', 'percent', 'enforce', 'retired'],
    },
    percent: { description: 'Share of callers in stage percent; else 0.', type: 'number', minimum: 0, maximum: 100 },
    createdAt: instant('When it was made.'),
    createdBy: words('Name of the API key that made it.'),
    revision: count('Another with every change of stage; its ETag.'),
  },
  optional: {
    basedOn: count('The version that was enforced when the author began.'),
    enforcedAt: instant('When it was last enforced for all; absent when it never was.'),
    note: words('Why, in the words of the author.'),
  },
} as const

export const VERSION = answerSchema('Version', {
  description: 'A rule set with a number. The rule set never changes, its stage does.',
  examples: [EXAMPLE],
  ...VERSION_PARTS,
})
export interface Version extends Infer<typeof VERSION> {}

/** Where a version stands. */
export type VersionStage = Version['stage']

export const VERSION_PAGE = pageSchema<Version>('VersionPage', VERSION)

export const VERSION_CONTENT = answerSchema('VersionContent', {
  description: 'A version and what is in it.',
  examples: [{ ...EXAMPLE, ruleSet: RULE_SET_EXAMPLE }],
  required: { ...VERSION_PARTS.required, ruleSet: RULE_SET },
  optional: VERSION_PARTS.optional,
})
export interface VersionContent extends Infer<typeof VERSION_CONTENT> {}

export const DRAFT_REQUEST = requestSchema('DraftRequest', {
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
export interface DraftRequest extends Infer<typeof DRAFT_REQUEST> {}

export const STAGE_REQUEST = requestSchema('StageRequest', {
  description: 'What becomes of a version.',
  examples: [{ stage: 'percent', percent: 10 }, { stage: 'enforce' }],
  required: {
    stage: {
      description:
        'shadow: measured. percent: enforced for a share of the callers. enforce: for all. retired: for none.',
      enum: ['shadow', 'percent', 'enforce', 'retired'],
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
export interface StageRequest extends Infer<typeof STAGE_REQUEST> {}

export const ROLLBACK_REQUEST = requestSchema('RollbackRequest', {
  description: 'Where to go back to.',
  examples: [{ to: 11, note: 'exports fail' }],
  optional: {
    to: whole('The version to enforce. Default: the one enforced before.', 1, LARGEST_VERSION),
    note: NOTE,
  },
})
export interface RollbackRequest extends Infer<typeof ROLLBACK_REQUEST> {}

const ENVOY_FILE = requestSchema('EnvoyFile', {
  description: 'A file in the form of envoyproxy/ratelimit.',
  examples: [
    {
      name: 'shop.yaml',
      text: 'domain: shop\ndescriptors:\n  - key: ip\n    rate_limit: { unit: minute, requests_per_unit: 60 }\n',
    },
  ],
  required: {
    name: text('As problems are to call it.', 200),
    text: { description: 'Its content: YAML.', type: 'string', minLength: 1 },
  },
})
export interface EnvoyFile extends Infer<typeof ENVOY_FILE> {}

export const IMPORT_REQUEST = requestSchema('ImportRequest', {
  description: 'Files to make a draft of.',
  examples: [{ files: [ENVOY_FILE.example] }],
  required: { files: { ...listOf<EnvoyFile>('The files.', ENVOY_FILE.ref), minItems: 1, maxItems: 100 } },
  optional: {
    mergeDomains: flag('Whether several files may have parts of one domain. Default: false.'),
    note: NOTE,
  },
})
export interface ImportRequest extends Infer<typeof IMPORT_REQUEST> {}

const RULE_SET_CHANGE = answerSchema('RuleSetChange', {
  description: 'One thing that differs between two rule sets.',
  examples: [{ change: 'changed', part: 'incident', name: '', before: 1, after: 0.5 }],
  required: {
    change: { description: 'What became of it.', enum: ['added', 'removed', 'changed'] },
    part: words('The part of the rule set, such as rules, tiers or denyList.'),
    name: words('Which of them; empty for a part that is one value, and for the order of a part.'),
  },
  optional: {
    before: { description: 'What was there; absent where nothing was.' },
    after: { description: 'What is there now; absent where nothing is.' },
  },
})
export interface RuleSetChange extends Infer<typeof RULE_SET_CHANGE> {}

export const DIFF_ANSWER = answerSchema('DiffAnswer', {
  description: 'What changes from one version to another.',
  examples: [{ from: 12, to: 13, changes: [RULE_SET_CHANGE.example] }],
  required: {
    from: count('The version before.'),
    to: count('The version after.'),
    changes: listOf<RuleSetChange>('Everything that differs; empty when they say the same.', RULE_SET_CHANGE.ref),
  },
})
export interface DiffAnswer extends Infer<typeof DIFF_ANSWER> {}
