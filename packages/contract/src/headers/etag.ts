const TAG = /^"(0|[1-9]\d{0,14})"$/

/** The condition of `If-Match`: a revision, any existing state, or an unknown tag. */
export type ExpectedRevision = number | 'any' | 'unknown'

/**
 * The `ETag` of a revision: of an override, a membership, a block, the incident switch or a version its own revision;
 * of rules, tiers, exemptions, the deny list and rollbacks the number of the enforced version. 0 means that nothing
 * exists yet.
 */
export function etagOf(revision: number): string {
  return `"${revision}"`
}

/** What a change is based on: a revision, any existing state (`any`), or nothing (`none`). */
export type Precondition = number | 'any' | 'none'

/** The revision in an `If-Match` header: one tag made by {@link etagOf}, or `*`. */
export function expectedRevision(ifMatch: string): ExpectedRevision {
  const value = ifMatch.trim()
  if (value === '*') return 'any'
  const revision = TAG.exec(value)?.[1]
  return revision === undefined ? 'unknown' : Number(revision)
}
