const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

const PART = /(\d+(?:\.\d+)?)\s?(ms|s|m|h|d|w)/g
const WHOLE = /^(?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d|w))+$/

/** The milliseconds of a duration such as `90s` or `1h30m`; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  if (text.length > 40 || !WHOLE.test(text)) return undefined
  let ms = 0
  for (const [, number, unit] of text.matchAll(PART)) ms += Number(number) * UNITS[unit!]!
  return Math.round(ms)
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** The instant of a date such as `2027-01-01` (in UTC) or `2027-01-01T12:00:00Z`, in milliseconds since 1970; else undefined. */
export function instantMs(text: string): number | undefined {
  const ms = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
