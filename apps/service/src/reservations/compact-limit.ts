import type { Limit } from '@sluice/core/internal'

/** A value of JSON. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A limit as a list: its algorithm, then the values of {@link COMMON}, then those of {@link OWN}. */
export type CompactLimit = readonly [algorithm: Limit['algorithm'], ...values: Json[]]

/** What every limit has, in the order of the list. Another order is another form of what is written with it. */
const COMMON = [
  'id',
  'rule',
  'limit',
  'capacity',
  'stateSize',
  'fixedSize',
  'space0',
  'space1',
  'failureMode',
] as const satisfies readonly (keyof Limit)[]

/** A field that the limits of one algorithm have besides. */
type OwnField<A extends Limit['algorithm']> = Exclude<keyof Extract<Limit, { algorithm: A }> & string, keyof Limit>

/** What the limits of one algorithm have besides. */
const OWN: { readonly [A in Limit['algorithm']]: readonly OwnField<A>[] } = {
  'token-bucket': ['rate', 'full'],
  'token-bucket-rollover': ['rate', 'full', 'rolloverFull'],
  'leaky-bucket-meter': ['rate', 'full'],
  gcra: ['rate', 'full'],
  'leaky-bucket-queue': ['rate', 'full'],
  'fixed-window': ['window', 'rolloverMax'],
  'sliding-window-counter': ['windowMicros'],
  'sliding-window-log': ['windowMicros'],
  'sliding-window-segments': ['windowMicros', 'segments'],
  hybrid: ['base', 'burst'],
  concurrency: ['leaseMicros'],
}

/** Limits within a limit. */
const NESTED: ReadonlySet<string> = new Set(['base', 'burst'])

/** `limit` in a form for JSON that is half as long as its own. */
export function compactLimit(limit: Limit): CompactLimit {
  const values: Readonly<Record<string, unknown>> = { ...limit }
  const fields = fieldsOf(limit.algorithm).map((field) => {
    const value = values[field]
    return NESTED.has(field) ? compactLimit(value as Limit) : ((value ?? null) as Json)
  })
  return [limit.algorithm, ...fields]
}

/** The limit that `compact` was made of. */
export function expandLimit([algorithm, ...values]: CompactLimit): Limit {
  const limit: Record<string, unknown> = { algorithm }
  for (const [index, field] of fieldsOf(algorithm).entries()) {
    const value = values[index]
    limit[field] = NESTED.has(field) ? expandLimit(value as CompactLimit) : (value ?? undefined)
  }
  return limit as unknown as Limit
}

function fieldsOf(algorithm: Limit['algorithm']): readonly string[] {
  return [...COMMON, ...OWN[algorithm]]
}
