const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

const WHOLE = /^(?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d|w))+$/
const PART = /(\d+(?:\.\d+)?)\s?(ms|s|m|h|d|w)/g

/** The milliseconds of a text such as `1h30m`, rounded to whole ones, 0 or more; undefined when it is none. */
export function durationMsOf(text: string): number | undefined {
  if (!WHOLE.test(text)) return undefined
  const parts = Array.from(text.matchAll(PART), ([, amount, unit]) => Number(amount) * (UNIT_MS[unit ?? ''] ?? 0))
  return Math.round(parts.reduce((sum, part) => sum + part, 0))
}
