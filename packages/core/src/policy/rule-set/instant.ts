const INSTANT = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?(?:Z|([+-])(\d{2}):(\d{2})))?$/

const MINUTE_MS = 60_000

/**
 * Parses an instant such as `2026-12-31T23:59:59Z`, `2026-12-31T23:59+01:00` or `2026-12-31` (0:00 UTC) into
 * milliseconds since 1970. Undefined for anything else, for days and times that do not exist, and for instants before
 * 1970.
 */
export function parseInstant(text: string): number | undefined {
  const parts = INSTANT.exec(text)
  if (parts === null) return undefined
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0))
  const millisecond = Number((parts[7] ?? '').padEnd(3, '0'))
  const localMs = Date.UTC(year!, month! - 1, day!, hour!, minute!, second!, millisecond)
  // The calendar carries over: if it formats differently, it did not exist.
  const date = `${parts[1]}-${parts[2]}-${parts[3]}T${parts[4] ?? '00'}:${parts[5] ?? '00'}:${parts[6] ?? '00'}`
  if (Number.isNaN(localMs) || !new Date(localMs).toISOString().startsWith(date)) return undefined
  const [offsetHours, offsetMinutes] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)]
  if (offsetHours > 23 || offsetMinutes > 59) return undefined
  const offsetMs = (offsetHours * 60 + offsetMinutes) * MINUTE_MS
  const ms = parts[8] === '-' ? localMs + offsetMs : localMs - offsetMs
  return ms >= 0 ? ms : undefined
}
