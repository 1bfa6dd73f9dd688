/** Which decisions are wanted; undefined is not filtered by. */
export interface WantedDecisions {
  readonly fromMs: number
  readonly toMs: number
  readonly resource?: string | undefined
  readonly outcome?: 'allowed' | 'denied' | undefined
  readonly node?: string | undefined
}

/** The page with the decisions of a span of time. */
export function decisionsPath({ fromMs, toMs, ...filter }: WantedDecisions): string {
  const given = Object.entries(filter).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return `/decisions?${new URLSearchParams([['from', String(fromMs)], ['to', String(toMs)], ...given])}`
}
