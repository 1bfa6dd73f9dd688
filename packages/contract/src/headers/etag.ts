const TAG = /^"(0|[1-9]\d{0,14})"$/

/** What `If-Match` asks for: a revision, anything that is there, or something that is not understood. */
export type ExpectedRevision = number | 'any' | 'unknown'

/**
 * The `ETag` of something at a revision: of an override, a membership, a block, the incident switch or a version its
 * revision; of rules, tiers, exemptions and deny list, and of what a rollback goes back from, the number of the
 * enforced version. 0 stands for nothing there yet.
 */
export function etagOf(revision: number): string {
  return `"${revision}"`
}

/** What a change is made from: a revision, anything that is there (`any`), or nothing (`none`). */
export type Precondition = number | 'any' | 'none'

/** The revision that the value of an `If-Match` header asks for: one tag made by {@link etagOf}, or `*`. */
export function expectedRevision(ifMatch: string): ExpectedRevision {
  const value = ifMatch.trim()
  if (value === '*') return 'any'
  const revision = TAG.exec(value)?.[1]
  return revision === undefined ? 'unknown' : Number(revision)
}
