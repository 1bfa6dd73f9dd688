import type { Version } from '@sluice/contract'
import { ApiError } from '../../../api/api-error.ts'
import { call } from '../../../api/client.ts'
import type { RuleDocument } from '../document/rule-document.ts'
import { loadEnforced } from '../versions/enforced-rules.ts'

/** How far a new version is to go. */
export type PublishStage = 'enforce' | 'shadow' | 'percent' | 'draft'

/** How to publish. */
export interface PublishOptions {
  readonly stage: PublishStage
  /** Share of callers, with stage `percent`. */
  readonly percent: number
  readonly note: string
}

/** What became of an edit: a version, or somebody else was faster. */
export type PublishResult = { readonly kind: 'published'; readonly version: Version } | { readonly kind: 'conflict' }

/**
 * Makes a version of an edit and moves it to its stage. When another version is enforced than the one the edit began
 * with, nothing is made: the edit must be put together with it first. Other failures reject with an `ApiError`.
 */
export async function publish(
  { base, value }: RuleDocument,
  { stage, percent, note }: PublishOptions,
): Promise<PublishResult> {
  const { number } = await loadEnforced()
  if (number !== base.version) return { kind: 'conflict' }
  const why = note.trim() === '' ? {} : { note: note.trim() }
  const version = await call('createVersion', {
    body: { ruleSet: value as never, basedOn: base.version, ...why },
  })
  if (stage === 'draft') return { kind: 'published', version }
  const body = stage === 'percent' ? { stage, percent, ...why } : { stage, ...why }
  const parameters = { number: version.number }
  try {
    return {
      kind: 'published',
      version: await call('stageVersion', { parameters, body, ifMatch: `"${version.revision}"` }),
    }
  } catch (error) {
    // Somebody published between the two calls: the draft stays a draft, and the edit is not lost.
    const isOvertaken = error instanceof ApiError && error.isConflict && (await loadEnforced()).number !== base.version
    if (isOvertaken) return { kind: 'conflict' }
    throw error
  }
}
