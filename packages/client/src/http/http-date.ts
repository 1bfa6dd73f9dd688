const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'
const HALF_CENTURY_MS = 50 * 365.25 * 86_400_000

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const TIME = '(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})'

/** The three formats of RFC 9110 section 5.6.7: the current one, RFC 850, asctime. */
const FORMS = [
  new RegExp(`^${DAY}, (?<day>\\d{2}) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${TIME} GMT$`),
  new RegExp(`^[A-Z][a-z]{5,8}, (?<day>\\d{2})-(?<month>[A-Z][a-z]{2})-(?<year>\\d{2}) ${TIME} GMT$`),
  new RegExp(`^${DAY} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
]

/**
 * The instant of an HTTP date, milliseconds since 1970; undefined if it is not one. A two-digit year is the one that is
 * at most 50 years after `nowMs`.
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  for (const form of FORMS) {
    const parts = form.exec(text)?.groups
    if (parts !== undefined) return instantOf(parts, nowMs)
  }
  return undefined
}

function instantOf(parts: Readonly<Record<string, string>>, nowMs: number): number | undefined {
  const month = MONTHS.indexOf(parts['month']!) / 3
  const [day, hour, minute, second] = [parts['day'], parts['hour'], parts['minute'], parts['second']].map(Number)
  const instantIn = (fullYear: number): number => Date.UTC(fullYear, month, day, hour, minute, second)
  // A leap second is the first second of the next minute.
  if (!Number.isInteger(month) || month < 0 || hour! > 23 || minute! > 59 || second! > 60) return undefined
  const year = Number(parts['year'])
  const isShort = parts['year']!.length === 2
  let instant = instantIn(isShort ? 2000 + year : year)
  if (isShort && instant > nowMs + HALF_CENTURY_MS) instant = instantIn(1900 + year)
  // The 31st of April would be the 1st of May.
  const isDay = second === 60 || new Date(instant).getUTCDate() === day
  return isDay ? instant : undefined
}
